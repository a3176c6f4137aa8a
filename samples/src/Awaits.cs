// Awaits: a program that writes down which async methods it ran, how long each ran after its first wait, how long it waited, and for what,
// while it is recorded. `awaits` is recorded with TplEventSource. `async-buffers` writes the buffers of .NET 11's async profiler itself, with an
// EventSource of that name, and says what is in them. C# 7, as in Churn.cs.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

// The names of ASP.NET Core: its requests are found by them.
[EventSource(Name = "Microsoft.AspNetCore.Hosting")]
sealed class HostingSource : EventSource
{
    public static readonly HostingSource Log = new HostingSource();
    [Event(3)] public void RequestStart(string method, string path) { WriteEvent(3, method, path); }
    [Event(4)] public void RequestStop() { WriteEvent(4); }
}

static class Awaits
{
    static readonly List<string> lines = new List<string>();
    static readonly double toMs = 1000.0 / Stopwatch.Frequency;

    static void Tell(string text) { lock (lines) lines.Add(text); }

    static string Ms(long ticks) { return (ticks * toMs).ToString("F4", CultureInfo.InvariantCulture); }

    // Runs for some time, and says how long it did.
    static long Spin(int ms)
    {
        long from = Stopwatch.GetTimestamp();
        while ((Stopwatch.GetTimestamp() - from) * toMs < ms) { }
        return Stopwatch.GetTimestamp() - from;
    }

    public static void Run()
    {
        HostingSource log = HostingSource.Log;
        // What is compiled or started once is done before.
        Order(0, 1).Wait();
        lock (lines) lines.Clear();
        Thread.Sleep(100);
        for (int id = 1; id <= 4; id++)
        {
            log.RequestStart("GET", "/order/" + id);
            long from = Stopwatch.GetTimestamp();
            Order(id, 10 * id).Wait();
            Tell("request /order/" + id + " " + Ms(Stopwatch.GetTimestamp() - from));
            log.RequestStop();
        }
        Task work = Task.Run(() => { Tell("work " + Ms(Spin(25))); });
        work.Wait();
        try { Fails().Wait(); } catch (AggregateException) { }
        Thread.Sleep(50);
        lock (lines) foreach (string line in lines) Console.WriteLine(line);
    }

    static async Task Order(int id, int ms)
    {
        long before = Stopwatch.GetTimestamp();
        await Stock(id, ms);
        long waited = Stopwatch.GetTimestamp() - before;
        long ran = Spin(8);
        before = Stopwatch.GetTimestamp();
        await Pay(id, ms);
        waited += Stopwatch.GetTimestamp() - before;
        ran += Spin(4);
        Tell("method Order " + id + " " + Ms(waited) + " " + Ms(ran) + " 2");
    }

    static async Task Stock(int id, int ms)
    {
        long before = Stopwatch.GetTimestamp();
        await Task.Delay(ms);
        long waited = Stopwatch.GetTimestamp() - before;
        Tell("blocked Stock Task.Delay " + Ms(waited));
        long ran = Spin(6);
        Tell("method Stock " + id + " " + Ms(waited) + " " + Ms(ran) + " 1");
    }

    static async Task Pay(int id, int ms)
    {
        // Completed by a thread of its own: nothing says what it is.
        TaskCompletionSource<bool> paid = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
        Thread thread = new Thread(() => { Thread.Sleep(ms + 5); paid.SetResult(true); });
        thread.Start();
        long before = Stopwatch.GetTimestamp();
        await paid.Task;
        long waited = Stopwatch.GetTimestamp() - before;
        Tell("blocked Pay ? " + Ms(waited));
        long ran = Spin(3);
        Tell("method Pay " + id + " " + Ms(waited) + " " + Ms(ran) + " 1");
    }

    static async Task Fails()
    {
        await Task.Delay(15);
        throw new InvalidOperationException("on purpose");
    }
}

// The EventSource that .NET 11 has, with its one event.
[EventSource(Name = "System.Runtime.CompilerServices.AsyncProfilerEventSource")]
sealed class ProfilerSource : EventSource
{
    public static readonly ProfilerSource Log = new ProfilerSource();
    [Event(1, Level = EventLevel.Informational, Version = 1)] public void AsyncEvents(byte[] buffer) { WriteEvent(1, buffer); }
}

// One buffer in the making: the events of a thread.
sealed class AsyncBuffer
{
    readonly MemoryStream bytes = new MemoryStream();
    readonly ulong thread;
    readonly long first;
    long last;
    uint count;

    public AsyncBuffer(ulong thread) { this.thread = thread; first = last = Stopwatch.GetTimestamp(); }

    static void Leb(Stream to, ulong value)
    {
        while (value > 0x7F) { to.WriteByte((byte)(value | 0x80)); value >>= 7; }
        to.WriteByte((byte)value);
    }

    static void Zigzag(Stream to, long value) { Leb(to, (ulong)((value << 1) ^ (value >> 63))); }

    public static byte[] Lebs(params ulong[] values)
    {
        MemoryStream to = new MemoryStream();
        foreach (ulong value in values) Leb(to, value);
        return to.ToArray();
    }

    // A logical call stack of state machines, the innermost first.
    public static byte[] Stack(ulong id, ulong[] methods)
    {
        MemoryStream to = new MemoryStream();
        to.WriteByte(0); to.WriteByte(0); to.WriteByte((byte)methods.Length);
        Leb(to, id);
        for (int i = 0; i < methods.Length; i++)
        {
            if (i == 0) Leb(to, methods[0]); else Zigzag(to, (long)(methods[i] - methods[i - 1]));
            Zigzag(to, i);
        }
        return to.ToArray();
    }

    // An event, and when it was: `prefix` bytes of length.
    public long Add(byte id, int prefix, byte[] payload)
    {
        long now = Stopwatch.GetTimestamp();
        bytes.WriteByte(id);
        Leb(bytes, (ulong)(now - last));
        if (prefix > 0) bytes.WriteByte((byte)payload.Length);
        if (prefix > 1) bytes.WriteByte((byte)(payload.Length >> 8));
        bytes.Write(payload, 0, payload.Length);
        last = now; count++;
        return now;
    }

    public void Write()
    {
        BinaryWriter to = new BinaryWriter(new MemoryStream());
        to.Write((byte)1); to.Write((uint)(37 + bytes.Length)); to.Write(1u); to.Write(thread); to.Write(count); to.Write(first); to.Write(last);
        to.Write(bytes.ToArray());
        to.Flush();
        ProfilerSource.Log.AsyncEvents(((MemoryStream)to.BaseStream).ToArray());
    }
}

static class AsyncBuffers
{
    static readonly byte[] none = new byte[0];

    [DllImport("libc")] static extern int gettid();

    static string Ms(long ticks) { return (ticks * 1000.0 / Stopwatch.Frequency).ToString("F4", CultureInfo.InvariantCulture); }

    // Methods that stand for async ones: their ids are what the profiler writes.
    [MethodImpl(MethodImplOptions.NoInlining)] static void Handler() { Thread.SpinWait(1); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Loads() { Thread.SpinWait(1); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Reads() { Thread.SpinWait(1); }

    static ulong Id(string name)
    {
        MethodInfo method = typeof(AsyncBuffers).GetMethod(name, BindingFlags.Static | BindingFlags.NonPublic);
        return (ulong)(long)method.MethodHandle.Value;
    }

    public static void Run()
    {
        Handler(); Loads(); Reads();
        ProfilerSource log = ProfilerSource.Log;
        Thread.Sleep(100);
        ulong[] methods = { Id("Reads"), Id("Loads"), Id("Handler") };
        List<string> lines = new List<string>();
        AsyncBuffer begin = new AsyncBuffer((ulong)gettid());
        List<byte> metadata = new List<byte>(AsyncBuffer.Lebs((ulong)Stopwatch.Frequency, (ulong)Stopwatch.GetTimestamp(), (ulong)DateTime.UtcNow.ToFileTimeUtc(), 16128));
        metadata.Add(32); metadata.Add(0);
        begin.Add(22, 2, metadata.ToArray());
        begin.Add(20, 0, none);
        begin.Write();
        for (ulong id = 1; id <= 5; id++)
        {
            // Created here, resumed on another thread, suspended, resumed here, where its methods end one after the other.
            AsyncBuffer here = new AsyncBuffer((ulong)gettid());
            long created = here.Add(11, 1, AsyncBuffer.Lebs(100 + id - 1, 100 + id));
            Thread.Sleep(5);
            long resumed = 0, suspended = 0;
            Thread other = new Thread(() =>
            {
                AsyncBuffer there = new AsyncBuffer((ulong)gettid());
                resumed = there.Add(12, 1, AsyncBuffer.Lebs(100 + id));
                there.Add(16, 2, AsyncBuffer.Stack(100 + id, methods));
                try { throw new InvalidOperationException("in Reads of " + id); } catch (InvalidOperationException) { }
                suspended = there.Add(13, 0, none);
                there.Write();
            });
            other.Start();
            other.Join();
            Thread.Sleep(7);
            long again = here.Add(12, 1, AsyncBuffer.Lebs(100 + id));
            // The stack of before, by its id.
            here.Add(16, 2, AsyncBuffer.Stack(100 + id, new ulong[0]));
            Thread.Sleep(2);
            here.Add(18, 0, none);
            try { throw new InvalidOperationException("in Loads of " + id); } catch (InvalidOperationException) { }
            here.Add(18, 0, none);
            try { throw new InvalidOperationException("in Handler of " + id); } catch (InvalidOperationException) { }
            long ended = here.Add(14, 0, none);
            here.Write();
            lines.Add("task " + (100 + id) + " " + (100 + id - 1) + " Handler " + Ms(suspended - resumed + ended - again) + " " + Ms(resumed - created + again - suspended) + " 2 2 " + Ms(ended - created));
        }
        foreach (string line in lines) Console.WriteLine(line);
    }
}
