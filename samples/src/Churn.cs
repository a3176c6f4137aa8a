// Churn: the program behind the traces in samples/. Every mode does a fixed amount of work (no clock and no
// random seed decides what is allocated), so two recordings differ in addresses and times only.
//
//   churn [THREADS]        garbage collections of every kind: generations 0, 1, 2; blocking, background and
//                          compacting; large objects; pinned, weak and dependent handles; finalizers
//   events                 one EventSource event for each kind of field, and activities
//   heap [TRACE [KEYWORDS]] a small known object graph with every kind of root; with TRACE the program opens its own
//                          diagnostics port and streams a heap dump of itself into that file
//   stacks [ROUNDS]        recursive work on two named threads, for a sampling profiler
//   exit-early [STEPS]     `churn`, then Environment.FailFast: an unfinished trace
//   large, pinned, ...     what the tests record, see Kinds.cs
//
// The language is kept to C# 7, so that Mono's mcs compiles this file as well as Roslyn does.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.IO;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static class Program
{
    static int Main(string[] args)
    {
        string mode = args.Length > 0 ? args[0] : "";
        switch (mode)
        {
            case "churn": Churn.Run(Number(args, 1, 1)); break;
            case "events": Events.Run(); break;
            case "heap": Heap.Run(args.Length > 1 ? args[1] : null, args.Length > 2 ? Convert.ToInt64(args[2], 16) : 0x1980001); break;
            case "subjects": Subjects.Run(); break;
            case "measures": Measures.Run(); break;
            case "known": Known.Run(); break;
            case "awaits": Awaits.Run(); break;
            case "async-buffers": AsyncBuffers.Run(); break;
            case "lifetimes": Lifetimes.Run(args.Length > 1 ? args[1] : null); break;
            case "stacks": Stacks.Run(Number(args, 1, 40)); break;
            case "exit-early":
                Churn.Steps(Number(args, 1, 6), 150);                    // the runtime writes what it has every 100 ms
                Environment.FailFast("exit-early: this end is on purpose");
                break;
            default:
                if (Kinds.Run(mode, args.Length > 1 ? int.Parse(args[1]) : (int?)null, args.Length > 2 ? int.Parse(args[2]) : (int?)null)) break;
                Console.Error.WriteLine("usage: Churn churn [THREADS] | events | heap [TRACE [KEYWORDS]] | stacks [ROUNDS] | subjects | measures | known | awaits | async-buffers | lifetimes [FILE] | exit-early [STEPS] | " + Kinds.Usage);
                return 2;
        }
        Console.WriteLine(mode + ": collections of generation 0, 1, 2: " + GC.CollectionCount(0) + ", " + GC.CollectionCount(1) + ", " + GC.CollectionCount(2));
        return 0;
    }

    static int Number(string[] args, int at, int otherwise) { return args.Length > at ? int.Parse(args[at]) : otherwise; }
}

// ---------------------------------------------------------------------------------------------------------------
// churn

sealed class Node { public Node Next; public byte[] Data; public string Text; }

sealed class Finalized
{
    public static int Count;
    ~Finalized() { Interlocked.Increment(ref Count); }
}

// What one thread allocates and keeps. Its own small generator stands in for System.Random, whose sequence is not
// the same on every runtime.
sealed class Worker
{
    uint state;
    readonly List<Node> kept = new List<Node>();
    readonly List<byte[]> large = new List<byte[]>();
    readonly List<GCHandle> pinned = new List<GCHandle>();
    readonly List<GCHandle> weak = new List<GCHandle>();
    readonly ConditionalWeakTable<Node, string> notes = new ConditionalWeakTable<Node, string>();

    public Worker(uint seed) { state = seed; }

    uint Next(uint below) { state = state * 1664525 + 1013904223; return (state >> 8) % below; }

    public void Step(int step)
    {
        // One node of eight survives the step, among garbage: holes, so that the collector has a reason to compact.
        for (int i = 0; i < 800; i++)
        {
            Node node = new Node { Data = new byte[16 + Next(200)], Text = i % 16 == 0 ? "node " + i : null };
            if (i % 8 != 0) continue;
            node.Next = kept.Count > 0 ? kept[(int)Next((uint)kept.Count)] : null;
            kept.Add(node);
            if (i % 400 == 0) notes.Add(node, "a note on node " + i);                              // dependent handle
            if (i % 600 == 0) weak.Add(GCHandle.Alloc(node, i % 1200 == 0 ? GCHandleType.Weak : GCHandleType.WeakTrackResurrection));
        }
        // A quarter of everything kept goes; links to what went are cut, or they would keep it.
        int to = 0;
        for (int i = 0; i < kept.Count; i++) if (Next(4) != 0) kept[to++] = kept[i];
        kept.RemoveRange(to, kept.Count - to);
        foreach (Node node in kept) if (Next(2) == 0) node.Next = null;

        for (int i = 0; i < 4; i++) large.Add(new byte[100000 + 5000 * i]);                          // large object heap
        while (large.Count > 10) large.RemoveAt((int)Next((uint)large.Count));
        for (int i = 0; i < 4; i++) pinned.Add(GCHandle.Alloc(new byte[64], GCHandleType.Pinned));
        while (pinned.Count > 12) Drop(pinned);
        while (weak.Count > 20) Drop(weak);
        for (int i = 0; i < 5; i++) new Finalized();
    }

    void Drop(List<GCHandle> handles)
    {
        int at = (int)Next((uint)handles.Count);
        handles[at].Free();
        handles.RemoveAt(at);
    }

    // Nothing survives this; it only fills generation 0, so that some collections start by themselves.
    public static void Garbage(int bytes) { for (int i = 0; i < bytes; i += 1024) Last = new byte[1000]; }
    [ThreadStatic] internal static byte[] Last;

    public void Free()
    {
        foreach (GCHandle h in pinned) h.Free();
        foreach (GCHandle h in weak) h.Free();
        GC.KeepAlive(kept);
        GC.KeepAlive(large);
        GC.KeepAlive(notes);
    }
}

static class Churn
{
    public static void Run(int threads)
    {
        // The runtime collects in the background only what is more than 4 MB, and only with some work to do does that
        // last. These nodes lie side by side and all live, so they add next to nothing to the trace.
        Node ballast = null;
        for (int i = 0; i < 200000; i++) ballast = new Node { Next = ballast };
        GC.Collect();

        Worker[] workers = new Worker[threads];
        for (int i = 0; i < threads; i++) workers[i] = new Worker((uint)(42 + i));
        for (int step = 0; step < 10; step++)
        {
            Together(workers, step);
            switch (step)
            {
                case 2: GC.Collect(1); break;
                case 4: GC.Collect(2, GCCollectionMode.Forced, true, false); break;                  // blocking, swept
                case 6:                                                                              // background
                    GC.Collect(2, GCCollectionMode.Forced, false, false);
                    Worker.Garbage(1 << 20);
                    GC.Collect(0);                                                                   // in the foreground of it
                    Thread.Sleep(100);
                    break;
                case 8: GC.Collect(2, GCCollectionMode.Forced, true, true); break;                   // blocking, compacted
                case 9:
                    System.Runtime.GCSettings.LargeObjectHeapCompactionMode = System.Runtime.GCLargeObjectHeapCompactionMode.CompactOnce;
                    GC.Collect();                                                                    // large objects move too
                    break;
                default: GC.Collect(0); break;
            }
        }
        GC.WaitForPendingFinalizers();
        foreach (Worker w in workers) w.Free();
        GC.KeepAlive(ballast);
        Console.WriteLine("finalized: " + Finalized.Count);
    }

    // The steps alone, each with a collection that a cut trace shows whole or in part.
    public static void Steps(int steps, int pause)
    {
        Worker worker = new Worker(42);
        for (int step = 0; step < steps; step++) { worker.Step(step); GC.Collect(step % 3); Thread.Sleep(pause); }
        GC.KeepAlive(worker);
    }

    static void Together(Worker[] workers, int step)
    {
        if (workers.Length == 1) { workers[0].Step(step); Worker.Garbage(3 << 19); return; }
        Thread[] threads = new Thread[workers.Length];
        for (int i = 0; i < threads.Length; i++)
        {
            Worker w = workers[i];
            threads[i] = new Thread(() => { w.Step(step); Worker.Garbage(3 << 19); }) { Name = "churn-" + i };
            threads[i].Start();
        }
        foreach (Thread t in threads) t.Join();
    }
}

// ---------------------------------------------------------------------------------------------------------------
// events

public enum Colour { Red = 1, Green = 2, Blue = 4 }
public enum Tiny : byte { None, One, Two }
[Flags] public enum Wide : long { None = 0, Low = 1, High = 1L << 40 }

// Types of the self-described events: a struct in a class in a class, and lists of them.
[EventData] public struct Point { public double X { get; set; } public double Y { get; set; } }
[EventData] public sealed class Shape { public string Name { get; set; } public Colour Colour { get; set; } public Point Centre { get; set; } }
[EventData(Name = "Drawing")] public sealed class Drawing { public int Id { get; set; } public Shape First { get; set; } public Guid Key { get; set; } public int[] Layers { get; set; } }
[EventData] public sealed class Lists { public Point[] Points { get; set; } public Dictionary<string, int> Counts { get; set; } public List<long> Numbers { get; set; } }
[EventData] public sealed class Times { public DateTime Utc { get; set; } public DateTimeOffset Local { get; set; } public TimeSpan Span { get; set; } public int? Some { get; set; } public int? Nothing { get; set; } public decimal Money { get; set; } }

// Events of a manifest: the fields are the parameters.
[EventSource(Name = "Tracequet-Churn")]
sealed class ManifestEvents : EventSource
{
    public static readonly ManifestEvents Log = new ManifestEvents();

    public static class Keywords { public const EventKeywords Numbers = (EventKeywords)1, Text = (EventKeywords)2, Work = (EventKeywords)4; }
    public static class Tasks { public const EventTask Request = (EventTask)1; }

    [Event(1, Level = EventLevel.Informational)] public void Nothing() { WriteEvent(1); }
    [Event(2, Keywords = Keywords.Numbers, Version = 2)]
    public void Numbers(bool b, byte u8, sbyte i8, short i16, ushort u16, int i32, uint u32, long i64, ulong u64, float f32, double f64, IntPtr pointer)
    { WriteEvent(2, b, u8, i8, i16, u16, i32, u32, i64, u64, f32, f64, pointer); }
    [Event(3, Keywords = Keywords.Text)] public void Text(string a, string empty, char c) { WriteEvent(3, a, empty, c); }
    [Event(10, Keywords = Keywords.Text)] public void Missing(string a, string none, string c) { WriteEvent(10, a, none, c); }
    [Event(4)] public void Others(Guid guid, DateTime time, Colour colour, Tiny tiny, Wide wide) { WriteEvent(4, guid, time, colour, tiny, wide); }
    [Event(5)] public void Blob(int length, byte[] blob) { WriteEvent(5, length, blob); }
    [Event(6, Level = EventLevel.Warning, Message = "{0} of {1}")] public void Message(int part, int whole) { WriteEvent(6, part, whole); }
    // Start and Stop at the end of a name make an activity of what lies between.
    [Event(7, Task = Tasks.Request, Opcode = EventOpcode.Start, Keywords = Keywords.Work)] public void RequestStart(int id, string path) { WriteEvent(7, id, path); }
    [Event(8, Task = Tasks.Request, Opcode = EventOpcode.Stop, Keywords = Keywords.Work)] public void RequestStop(int id, int status) { WriteEvent(8, id, status); }
    [Event(9, Opcode = EventOpcode.Send, Task = (EventTask)2)] public void Hand(Guid relatedActivityId, int id) { WriteEventWithRelatedActivityId(9, relatedActivityId, id); }
}

// Events that describe themselves: arrays are allowed as parameters.
[EventSource(Name = "Tracequet-Churn-Described")]
sealed class DescribedEvents : EventSource
{
    public static readonly DescribedEvents Log = new DescribedEvents();
    DescribedEvents() : base(EventSourceSettings.EtwSelfDescribingEventFormat) { }

    [Event(1)] public void Arrays(int[] ints, double[] doubles, bool[] bools) { WriteEvent(1, ints, doubles, bools); }
    [Event(2)] public void MoreArrays(short[] shorts, ulong[] longs, float[] floats) { WriteEvent(2, shorts, longs, floats); }
    [Event(5)] public void Bytes(byte[] bytes) { WriteEvent(5, bytes); }
    [Event(6)] public void Chars(char[] chars) { WriteEvent(6, chars); }
    [Event(3)] public void Between(string before, int[] numbers, string after) { WriteEvent(3, before, numbers, after); }
    // 3.1 cannot write the first of these, and no runtime the second: in place of the event comes a message about it.
    [Event(7)] public void Guids(Guid[] guids) { WriteEvent(7, guids); }
    [Event(4)] public void Refused(string[] strings) { WriteEvent(4, (object)strings); }
}

static class Events
{
    public static void Run()
    {
        ManifestEvents log = ManifestEvents.Log;
        DescribedEvents described = DescribedEvents.Log;
        string[] words = { "plain", "\u00e9t\u00e9", "\u4e2d\u6587", "\ud83d\ude00", "", "tab\tand \"quote\", comma", "\u0437\u043d\u0430\u0447\u0435\u043d\u0438\u0435" };
        EventSourceOptions options = new EventSourceOptions { Level = EventLevel.Informational, Keywords = (EventKeywords)8 };
        for (int i = 0; i < 20; i++)
        {
            log.Nothing();
            log.Numbers(i % 2 == 0, (byte)(250 + i), (sbyte)(100 - 20 * i), (short)(-3000 * i), (ushort)(65000 + i * 100), -i, (uint)i << 31, -((long)i << 40), ulong.MaxValue - (ulong)i, i / 3f, i == 7 ? double.NaN : i / 7.0, new IntPtr(0x7f0000000000L + i));
            log.Text(words[i % words.Length], "", "aZ\u00e9\u4e2d"[i % 4]);
            log.Missing("before", null, "after " + i);
            log.Others(new Guid(i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), new DateTime(2024, 2, 29, 12, 0, 0, DateTimeKind.Utc).AddSeconds(i), (Colour)(1 << (i % 3)), (Tiny)(i % 3), i % 2 == 0 ? Wide.High : Wide.Low);
            byte[] blob = new byte[i];
            for (int k = 0; k < i; k++) blob[k] = (byte)(k * 37);
            log.Blob(i, blob);
            log.Message(i, 20);

            int[] ints = new int[i % 5];
            for (int k = 0; k < ints.Length; k++) ints[k] = i * 1000 - k;
            described.Arrays(ints, new double[] { i * 0.5 }, new bool[] { true, false });
            described.MoreArrays(new short[] { (short)-i }, new ulong[] { ulong.MaxValue, 0 }, new float[] { 0.1f, i });
            described.Bytes(blob);
            described.Chars("chars".ToCharArray());
            described.Between("before", ints, "after");
            if (i == 10) described.Guids(new Guid[] { new Guid(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), Guid.Empty });
            if (i == 10) described.Refused(words);

            Shape shape = new Shape { Name = words[i % words.Length], Colour = Colour.Green, Centre = new Point { X = i, Y = -i * 0.25 } };
            described.Write("Drawing", options, new Drawing { Id = i, First = shape, Key = new Guid(i, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9), Layers = new int[] { 1, 2, i } });
            described.Write("Lists", options, new Lists { Points = new Point[] { new Point { X = 1, Y = 2 }, new Point { X = 3, Y = i } }, Counts = new Dictionary<string, int> { { "a", i }, { "b", -i } }, Numbers = new List<long> { 1L << 40, i } });
            described.Write("Times", options, new Times { Utc = new DateTime(2024, 1, 1, 0, 0, i, DateTimeKind.Utc), Local = new DateTimeOffset(2024, 1, 1, 0, 0, i, TimeSpan.FromHours(2)), Span = TimeSpan.FromSeconds(i), Some = i, Nothing = null, Money = 1.25m * i });
            described.Write("Anonymous", options, new { Id = i, Inner = new { Ratio = i / 4.0, Label = "inner " + i } });
            described.Write("Empty", options);

            // Activities: nested by Start and Stop (the runtime makes the ids), then one with ids of our own.
            log.RequestStart(i, "/outer");
            log.RequestStart(100 + i, "/inner");
            log.Message(i, 1);
            log.RequestStop(100 + i, 404);
            log.RequestStop(i, 200);
            Guid before;
            EventSource.SetCurrentThreadActivityId(new Guid(0x11111111, 1, 1, 1, 1, 1, 1, 1, 1, 1, (byte)i), out before);
            log.Message(i, 2);
            log.Hand(new Guid(0x22222222, 2, 2, 2, 2, 2, 2, 2, 2, 2, (byte)i), i);
            EventSource.SetCurrentThreadActivityId(before);
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------
// heap

sealed class City { public string Name; public List<Road> Roads = new List<Road>(); public object Tag; }
sealed class Road { public City From, To; public double Length; }
sealed class Holder<T> { public T Value; }
sealed class Mourned { public City City; ~Mourned() { Heap.Resurrected = this; } }

static class Heap
{
    public static object Resurrected;
    static City[] map;                                   // root: a static field
    [ThreadStatic] internal static Holder<City> PerThread;        // root: a thread's static field

    public static void Run(string trace, long keywords)
    {
        // 200 cities in a ring with shortcuts: 200 City, 400 Road, their lists, and 200 names.
        map = new City[200];
        for (int i = 0; i < map.Length; i++) map[i] = new City { Name = "city " + i };
        for (int i = 0; i < map.Length; i++)
        {
            Link(map[i], map[(i + 1) % map.Length], 1);
            Link(map[i], map[i * 7 % map.Length], i);
        }
        map[0].Tag = new object[] { 1, 2.5, 'c', new Guid(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), new byte[100000], new int[3, 4], new Holder<int> { Value = 3 } };
        PerThread = new Holder<City> { Value = map[1] };
        City onStack = new City { Name = "on the stack" };
        GCHandle strong = GCHandle.Alloc(new City { Name = "strong handle" });
        GCHandle pinned = GCHandle.Alloc(new byte[32], GCHandleType.Pinned);
        GCHandle shortWeak = GCHandle.Alloc(map[2], GCHandleType.Weak);
        GCHandle longWeak = GCHandle.Alloc(map[3], GCHandleType.WeakTrackResurrection);
        ConditionalWeakTable<City, Holder<string>> notes = new ConditionalWeakTable<City, Holder<string>>();  // dependent handles
        for (int i = 0; i < 40; i++) notes.Add(map[i], new Holder<string> { Value = "note " + i });
        Mourn();                                         // root: the finalizer's queue, once a collection found it dead
        GC.Collect();
        if (trace != null) SelfAttach.Record(trace, keywords);
        GC.KeepAlive(onStack);
        GC.KeepAlive(notes);
        strong.Free(); pinned.Free(); shortWeak.Free(); longWeak.Free();
    }

    static void Link(City from, City to, double length)
    {
        from.Roads.Add(new Road { From = from, To = to, Length = length });
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Mourn() { for (int i = 0; i < 5; i++) new Mourned { City = map[i] }; }
}

// The client side of the diagnostics port, as much of it as one session needs: ask our own runtime to collect
// (the runtime takes a heap dump when a session asks for it), copy the stream to a file, stop when the dump is done.
static class SelfAttach
{
    public static void Record(string path, long keywords)
    {
        Socket session = Connect();
        Send(session, 0x03, w =>                         // CollectTracing2
        {
            w.Write(64u);                                // buffer, MB
            w.Write(1u);                                 // format: nettrace
            w.Write(false);                              // no rundown
            w.Write(1u);                                 // providers
            w.Write(keywords);
            w.Write(5u);                                 // level: verbose
            Text(w, "Microsoft-Windows-DotNETRuntime");
            Text(w, "");
        });
        long id = BitConverter.ToInt64(Answer(session), 0);
        long copied = 0;
        Thread copy = new Thread(() =>
        {
            byte[] buffer = new byte[65536];
            using (FileStream file = File.Create(path))
                for (int n; (n = session.Receive(buffer)) > 0; Interlocked.Add(ref copied, n)) file.Write(buffer, 0, n);
        }) { Name = "copy" };
        copy.Start();
        // The runtime flushes as it likes, so ask for the end only after the stream has been still for a while.
        for (long seen = -1; seen != Interlocked.Read(ref copied); Thread.Sleep(400)) seen = Interlocked.Read(ref copied);
        Socket control = Connect();
        Send(control, 0x01, w => w.Write(id));           // StopTracing
        Answer(control);
        copy.Join();
    }

    static Socket Connect()
    {
        string folder = Environment.GetEnvironmentVariable("TMPDIR");
        string[] found = Directory.GetFiles(string.IsNullOrEmpty(folder) ? "/tmp" : folder, "dotnet-diagnostic-" + Process.GetCurrentProcess().Id + "-*-socket");
        // The newest last, should an old process have had our id: names end in the time of its start, which has no leading zeros.
        Array.Sort(found, (a, b) => a.Length != b.Length ? a.Length - b.Length : string.CompareOrdinal(a, b));
        Socket socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
        socket.Connect(new UnixDomainSocketEndPoint(found[found.Length - 1]));
        return socket;
    }

    // Magic, size of the whole, set of commands (2: EventPipe), command, two zero bytes, and the payload.
    static void Send(Socket socket, byte command, Action<BinaryWriter> payload)
    {
        MemoryStream body = new MemoryStream();
        payload(new BinaryWriter(body));
        MemoryStream message = new MemoryStream();
        BinaryWriter w = new BinaryWriter(message);
        w.Write(Encoding.ASCII.GetBytes("DOTNET_IPC_V1\0"));
        w.Write((ushort)(20 + body.Length));
        w.Write((byte)2);
        w.Write(command);
        w.Write((ushort)0);
        w.Write(body.ToArray());
        socket.Send(message.ToArray());
    }

    static byte[] Answer(Socket socket)
    {
        byte[] header = Exactly(socket, 20);
        byte[] payload = Exactly(socket, BitConverter.ToUInt16(header, 14) - 20);
        if (header[17] != 0) throw new IOException("the runtime refused: 0x" + BitConverter.ToUInt32(payload, 0).ToString("x8"));
        return payload;
    }

    static byte[] Exactly(Socket socket, int count)
    {
        byte[] bytes = new byte[count];
        for (int at = 0, n; at < count; at += n)
            if ((n = socket.Receive(bytes, at, count - at, SocketFlags.None)) == 0) throw new EndOfStreamException();
        return bytes;
    }

    static void Text(BinaryWriter w, string text) { w.Write(text.Length + 1); w.Write(Encoding.Unicode.GetBytes(text + "\0")); }
}

// ---------------------------------------------------------------------------------------------------------------
// stacks

static class Stacks
{
    public static void Run(int rounds)
    {
        Thread even = new Thread(() => { for (int i = 0; i < rounds; i++) Even(24, i); }) { Name = "even-odd" };
        Thread fib = new Thread(() => { for (int i = 0; i < rounds; i++) total += Fibonacci(27); }) { Name = "fibonacci" };
        even.Start();
        fib.Start();
        even.Join();
        fib.Join();
        Console.WriteLine("stacks: " + total);
    }

    static long total;

    // A recursion of two methods that call one another, with the work at its bottom.
    [MethodImpl(MethodImplOptions.NoInlining)] static double Even(int n, int seed) { return n == 0 ? Spin(seed) : 1 + Odd(n - 1, seed); }
    [MethodImpl(MethodImplOptions.NoInlining)] static double Odd(int n, int seed) { return 1 + Even(n - 1, seed); }
    [MethodImpl(MethodImplOptions.NoInlining)] static double Spin(int seed) { double x = seed + 1; for (int i = 0; i < 400000; i++) x = Math.Sqrt(x * x + i); return x; }
    [MethodImpl(MethodImplOptions.NoInlining)] static long Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }
}
