// Subjects: a program that writes down its own exceptions, waits for a lock, requests and counters on standard output, one line
// each, while it is recorded: the tables can be compared with it. For requests and naps it prints two times, between
// writing the two events and around that: the true one lies between. For an exception it prints the source lines of its stack, where
// the runtime finds the program's symbols. C# 7, as in Churn.cs.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.IO;
using System.Reflection;
using System.Threading;
using System.Threading.Tasks;

[EventSource(Name = "Tracequet-Subjects")]
sealed class SubjectsSource : EventSource
{
    public static readonly SubjectsSource Log = new SubjectsSource();
    public readonly EventCounter Load;
    public SubjectsSource() { Load = new EventCounter("load", this) { DisplayName = "Load", DisplayUnits = "MB" }; }
    [Event(1)] public void RequestStart(int requestId, string path) { WriteEvent(1, requestId, path); }
    [Event(2)] public void RequestStop(int requestId, int statusCode) { WriteEvent(2, requestId, statusCode); }
    [Event(3)] public void RequestFailed(int requestId, string why) { WriteEvent(3, requestId, why); }
    [Event(4)] public void NapStart(string name) { WriteEvent(4, name); }
    [Event(5)] public void NapStop(string name) { WriteEvent(5, name); }
}

sealed class OddException : Exception { public OddException(string message, Exception inner) : base(message, inner) { } }

static class Subjects
{
    static readonly List<string> lines = new List<string>();
    static readonly double toMs = 1000.0 / Stopwatch.Frequency;

    static void Tell(string text) { lock (lines) lines.Add(text); }

    // Where an exception was thrown, as the runtime itself finds it: method, file and line of each frame, innermost first.
    static void Lines(Exception e)
    {
        List<StackFrame> frames = new List<StackFrame>(new StackTrace(e, true).GetFrames());
        // The exception's own frames end in the method that caught it, which calls this one.
        frames.AddRange(new StackTrace(2, true).GetFrames());
        string text = "";
        foreach (StackFrame frame in frames)
        {
            if (frame.GetFileName() == null) return;
            MethodBase method = frame.GetMethod();
            text += "|" + method.DeclaringType + "." + method.Name + "|" + Path.GetFileName(frame.GetFileName()) + "|" + frame.GetFileLineNumber();
        }
        Tell("line " + e.Message + text);
    }

    static string Ms(long ticks) { return (ticks * toMs).ToString("F4", CultureInfo.InvariantCulture); }

    public static void Run()
    {
        SubjectsSource log = SubjectsSource.Log;
        Instruments instruments = new Instruments();
        Thread.Sleep(150);
        Exceptions();
        Locks();
        Requests(log);
        Work();
        double sum = 0;
        for (int i = 1; i <= 20; i++) { log.Load.WriteMetric(i * 0.5f); sum += i * 0.5; instruments.Add(i); Thread.Sleep(20); }
        Tell("counter load 20 " + sum.ToString(CultureInfo.InvariantCulture));
        if (instruments.Exist) Tell("instrument made 20 210");
        Thread.Sleep(300);
        foreach (string line in lines) Console.WriteLine(line);
    }

    // ---- exceptions: thrown and caught here, thrown on by `throw;`, thrown in a handler, filtered, not caught where a finally is

    static void Exceptions()
    {
        for (int i = 0; i < 3; i++)
        {
            try { throw new InvalidOperationException("plain " + i); } catch (InvalidOperationException e) { Lines(e); }
            Tell("exception System.InvalidOperationException|plain " + i + "|1|Exceptions");
        }
        try
        {
            try { throw new ArgumentException("again"); } catch (ArgumentException) { throw; }
        }
        catch (ArgumentException) { }
        Tell("exception System.ArgumentException|again|2|Exceptions");
        try
        {
            try { throw new FormatException("first"); }
            catch (FormatException e) { throw new OddException("second", e); }
        }
        catch (OddException) { }
        Tell("exception System.FormatException|first|1|Exceptions");
        Tell("exception OddException|second|1|Exceptions");
        try { Leave(); } catch (Exception e) when (e.Message == "leave") { Lines(e); }
        Tell("exception System.TimeoutException|leave|1|Exceptions");
    }

    static int left;
    static void Leave() { try { throw new TimeoutException("leave"); } finally { left++; } }

    // ---- a lock that is held for 30 ms while another thread wants it

    static void Locks()
    {
        object gate = new object();
        for (int i = 0; i < 4; i++)
        {
            using (ManualResetEventSlim held = new ManualResetEventSlim())
            {
                long waited = 0;
                Thread waiter = new Thread(() =>
                {
                    held.Wait();
                    long from = Stopwatch.GetTimestamp();
                    lock (gate) waited = Stopwatch.GetTimestamp() - from;
                });
                waiter.Start();
                lock (gate) { held.Set(); Thread.Sleep(30); }
                waiter.Join();
                Tell("lock " + Ms(waited));
            }
        }
    }

    // ---- requests: several at a time, which begin and end on different threads, and use ids of activities again

    static async Task Request(SubjectsSource log, int id)
    {
        long outer = Stopwatch.GetTimestamp();
        log.RequestStart(id, "/item/" + id);
        long inner = Stopwatch.GetTimestamp();
        await Task.Delay(10 + id % 7 * 5);
        if (id % 4 == 3) log.RequestFailed(id, "on purpose");
        inner = Stopwatch.GetTimestamp() - inner;
        log.RequestStop(id, id % 4 == 3 ? 500 : 200);
        outer = Stopwatch.GetTimestamp() - outer;
        Tell("request " + id + " " + Ms(inner) + " " + Ms(outer) + " " + (id % 4 == 3 ? "failed" : "200"));
    }

    static void Requests(SubjectsSource log)
    {
        for (int round = 0; round < 5; round++)
        {
            List<Task> all = new List<Task>();
            for (int i = 0; i < 4; i++) all.Add(Request(log, round * 4 + i));
            Task.WaitAll(all.ToArray());
        }
        for (int i = 0; i < 3; i++)
        {
            long outer = Stopwatch.GetTimestamp();
            log.NapStart("nap");
            long inner = Stopwatch.GetTimestamp();
            Thread.Sleep(5);
            inner = Stopwatch.GetTimestamp() - inner;
            log.NapStop("nap");
            outer = Stopwatch.GetTimestamp() - outer;
            Tell("nap " + Ms(inner) + " " + Ms(outer));
        }
    }

    static void Work()
    {
        using (CountdownEvent done = new CountdownEvent(50))
        {
            for (int i = 0; i < 50; i++) ThreadPool.QueueUserWorkItem(_ => done.Signal());
            done.Wait();
        }
        Tell("work 50");
    }

    // System.Diagnostics.Metrics, which .NET Core 3.1 does not have, by reflection.
    sealed class Instruments
    {
        readonly object counter;
        readonly MethodInfo add;

        public Instruments()
        {
            Type type = Type.GetType("System.Diagnostics.Metrics.Meter, System.Diagnostics.DiagnosticSource");
            if (type == null) return;
            object meter = Activator.CreateInstance(type, "Tracequet.Subjects");
            foreach (MethodInfo method in type.GetMethods())
            {
                if (method.Name != "CreateCounter" || method.GetParameters().Length != 3) continue;
                counter = method.MakeGenericMethod(typeof(long)).Invoke(meter, new object[] { "made", "{thing}", "Things made" });
                add = counter.GetType().GetMethod("Add", new[] { typeof(long) });
                break;
            }
        }

        public bool Exist { get { return add != null; } }
        public void Add(long value) { if (add != null) add.Invoke(counter, new object[] { value }); }
    }
}
