// Measures: a program that writes down what it measures, waits for and loads, one line each, while it is recorded: what is in the
// tables can be compared with it. For a wait it prints the time around the call. C# 7, as in Churn.cs; what .NET Core 3.1 does not have
// is called by reflection, and left out there.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Reflection;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

static class Measures
{
    const string Library = "System.Diagnostics.DiagnosticSource";
    static readonly List<string> lines = new List<string>();
    static readonly double toMs = 1000.0 / Stopwatch.Frequency;

    static void Tell(string text) { lock (lines) lines.Add(text); }

    static string Ms(long ticks) { return (ticks * toMs).ToString("F4", CultureInfo.InvariantCulture); }

    public static void Run()
    {
        Meters meters = new Meters();
        Thread.Sleep(150);
        Waits();
        Pool();
        Loads();
        Activities();
        meters.Measure();
        foreach (string line in lines) Console.WriteLine(line);
    }

    // ---- waits of every kind, each ended after some time by another thread, or by itself

    static void Timed(string kind, Action wait)
    {
        long from = Stopwatch.GetTimestamp();
        wait();
        Tell("wait " + kind + " " + Ms(Stopwatch.GetTimestamp() - from));
    }

    static void After(int ms, Action action)
    {
        Thread thread = new Thread(() => { Thread.Sleep(ms); action(); });
        thread.IsBackground = true;
        thread.Start();
    }

    static void Waits()
    {
        for (int ms = 20; ms <= 60; ms += 20)
        {
            ManualResetEvent set = new ManualResetEvent(false);
            After(ms, () => set.Set());
            Timed("event", () => set.WaitOne());
            Semaphore semaphore = new Semaphore(0, 1);
            After(ms + 5, () => semaphore.Release());
            Timed("any", () => WaitHandle.WaitAny(new WaitHandle[] { semaphore, new AutoResetEvent(false) }, 1000));
            Timed("timeout", () => new AutoResetEvent(false).WaitOne(ms));
            object gate = new object();
            lock (gate)
            {
                After(ms + 10, () => { lock (gate) Monitor.PulseAll(gate); });
                Timed("monitor", () => Monitor.Wait(gate));
            }
        }
    }

    // ---- more work items that block than the pool has workers: it has to start some

    static void Pool()
    {
        ThreadPool.SetMinThreads(7, 3);
        Tell("limit min 7");
        ThreadPool.SetMaxThreads(40, 30);
        Tell("limit max 40");
        using (CountdownEvent busy = new CountdownEvent(7))
        using (ManualResetEventSlim go = new ManualResetEventSlim())
        using (CountdownEvent done = new CountdownEvent(7))
        {
            for (int i = 0; i < 7; i++) ThreadPool.QueueUserWorkItem(_ => { busy.Signal(); go.Wait(); done.Signal(); });
            busy.Wait();
            PropertyInfo count = typeof(ThreadPool).GetProperty("ThreadCount");
            Tell("workers " + count.GetValue(null));
            go.Set();
            done.Wait();
        }
    }

    // ---- assemblies: some that are there, some that are not, one twice

    static void Loads()
    {
        foreach (string name in new[] { "System.Xml.XDocument", "No.Such.Assembly", "System.IO.Pipes", "System.Xml.XDocument", "Neither.Is.This" })
        {
            bool found = true;
            try { Assembly.Load(new AssemblyName(name)); } catch (Exception) { found = false; }
            Tell("load " + name + " " + found);
        }
    }

    // ---- activities of an ActivitySource, one inside the other

    static void Activities()
    {
        Type type = Type.GetType("System.Diagnostics.ActivitySource, " + Library);
        if (type == null) return;
        object source = Activator.CreateInstance(type, type.GetConstructors()[0].GetParameters().Length == 2 ? new object[] { "Tracequet.Measures", "1" } : new object[] { "Tracequet.Measures", "1", null });
        MethodInfo start = null;
        foreach (MethodInfo method in type.GetMethods())
            if (method.Name == "StartActivity" && method.GetParameters().Length == 2 && method.GetParameters()[0].ParameterType == typeof(string)) start = method;
        object kind = Enum.ToObject(start.GetParameters()[1].ParameterType, 0);
        for (int i = 0; i < 3; i++)
        {
            long outer = Stopwatch.GetTimestamp();
            IDisposable order = (IDisposable)start.Invoke(source, new[] { "Order", kind });
            long inner = Stopwatch.GetTimestamp();
            if (order == null) return;                            // no listener
            Thread.Sleep(4);
            long outerStep = Stopwatch.GetTimestamp();
            IDisposable step = (IDisposable)start.Invoke(source, new[] { "Step", kind });
            long innerStep = Stopwatch.GetTimestamp();
            Thread.Sleep(3);
            innerStep = Stopwatch.GetTimestamp() - innerStep;
            step.Dispose();
            outerStep = Stopwatch.GetTimestamp() - outerStep;
            inner = Stopwatch.GetTimestamp() - inner;
            order.Dispose();
            outer = Stopwatch.GetTimestamp() - outer;
            Tell("activity Step " + Ms(innerStep) + " " + Ms(outerStep));
            Tell("activity Order " + Ms(inner) + " " + Ms(outer));
        }
    }

    // ---- System.Diagnostics.Metrics: instruments of every kind

    sealed class Meters
    {
        readonly object meter;
        readonly Action<double> even, constant;
        readonly Action<long> level;
        int asked;

        public Meters()
        {
            Type type = Type.GetType("System.Diagnostics.Metrics.Meter, " + Library);
            if (type == null) return;
            meter = Activator.CreateInstance(type, "Tracequet.Measures");
            even = Recorder<double>(Create("CreateHistogram", typeof(double), "even", "ms"), "Record");
            constant = Recorder<double>(Create("CreateHistogram", typeof(double), "constant", "By"), "Record");
            object upDown = Create("CreateUpDownCounter", typeof(long), "level", "{thing}");
            if (upDown != null) level = Recorder<long>(upDown, "Add");
            foreach (MethodInfo method in type.GetMethods())
            {
                if (method.Name != "CreateObservableGauge" || method.GetParameters().Length != 4) continue;
                Type[] argument = method.GetParameters()[1].ParameterType.GetGenericArguments();
                if (!argument[0].IsGenericParameter) continue;
                method.MakeGenericMethod(typeof(double)).Invoke(meter, new object[] { "asked", new Func<double>(Asked), "1", null });
            }
        }

        // The gauge has another value each time that it is read.
        double Asked()
        {
            double value = ++asked * 1.5;
            Tell("gauge " + value.ToString(CultureInfo.InvariantCulture));
            return value;
        }

        object Create(string name, Type of, string instrument, string unit)
        {
            foreach (MethodInfo method in meter.GetType().GetMethods())
                if (method.Name == name && method.GetParameters().Length == 3) return method.MakeGenericMethod(of).Invoke(meter, new object[] { instrument, unit, null });
            return null;
        }

        static Action<T> Recorder<T>(object instrument, string name)
        {
            MethodInfo method = instrument.GetType().GetMethod(name, new[] { typeof(T) });
            return (Action<T>)Delegate.CreateDelegate(typeof(Action<T>), instrument, method);
        }

        // Bursts of the numbers from 1 to 1000 in a mixed order, and of one number.
        public void Measure()
        {
            if (meter == null) { Thread.Sleep(200); return; }
            int bursts = 0, constants = 0;
            long sum = 0;
            for (int round = 0; round < 12; round++)
            {
                for (int i = 0; i < 1000; i++) even(i * 617 % 1000 + 1);
                bursts++;
                for (int i = 0; i < 40; i++) { constant(42.5); constants++; }
                if (level != null) { level(round % 3 == 2 ? -4 : 5); sum += round % 3 == 2 ? -4 : 5; }
                Thread.Sleep(90);
            }
            Thread.Sleep(450);
            Tell("histogram even " + bursts * 1000 + " " + bursts * 500500);
            Tell("histogram constant " + constants + " " + (constants * 42.5).ToString(CultureInfo.InvariantCulture));
            if (level != null) Tell("level " + sum);
        }
    }
}
