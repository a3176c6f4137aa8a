// Habits that cost a collector, a thread pool, a compiler or a recording much, and the same work without each: the recordings in
// samples/habits, on which the rules of `tracequet explain` are tested. For .NET 10 with ASP.NET Core.
//
//   Habits MODE [clean] [SECONDS]      record-habits.sh has the modes
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Linq;
using System.Net.Http;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.Logging;

namespace Depot
{
    /// A part of a tree, so that a collection has to follow references.
    public sealed class Node
    {
        public Node Left, Right;
        public long Value;

        public static Node Tree(int depth) => depth == 0 ? new Node() : new Node { Left = Tree(depth - 1), Right = Tree(depth - 1) };
    }

    /// Objects that die before the next collection.
    public static class Garbage
    {
        private static byte[] last;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Make(int bytes)
        {
            for (var made = 0; made < bytes; made += 1000) last = new byte[1000];
        }
    }

    /// A recursion that waits at its end.
    public static class Depth
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Reach(int more, WaitHandle until)
        {
            if (more == 0) until.WaitOne();
            else return Reach(more - 1, until) + 1;
            return 0;
        }
    }

    public static class Watchers
    {
        // The habit: a handle for each thing that is watched, and it is not freed.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Watch(bool clean)
        {
            for (var n = 0; n < 30; n++)
            {
                var handle = GCHandle.Alloc(new byte[100], GCHandleType.Weak);
                if (clean) handle.Free();
            }
        }
    }

    public sealed class Ticket : IDisposable
    {
        private long number = 1;
        public long Number => this.number;
        ~Ticket() { this.number = 0; }
        public void Dispose() { this.number = 0; GC.SuppressFinalize(this); }

        // The habit: it is not disposed of, so that it lives until it was finalized.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Sell(bool clean)
        {
            for (var n = 0; n < 400; n++)
            {
                var ticket = new Ticket();
                if (clean) ticket.Dispose();
            }
        }
    }

    public static class Wires
    {
        private static readonly Queue<GCHandle> pinned = new Queue<GCHandle>();
        private static readonly byte[][] kept = Enumerable.Range(0, 400).Select(_ => GC.AllocateArray<byte>(2000, true)).ToArray();
        private static readonly Queue<object> sent = new Queue<object>();

        // The habit: a new buffer is pinned for each message, while native code would read it.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Send(bool clean, int message)
        {
            sent.Enqueue(new byte[200]);
            if (sent.Count > 1000) sent.Dequeue();
            if (clean)
            {
                kept[message % kept.Length][0] = 1;
                return;
            }
            pinned.Enqueue(GCHandle.Alloc(new byte[2000], GCHandleType.Pinned));
            if (pinned.Count > 400) pinned.Dequeue().Free();
        }
    }

    public static class Cleaning
    {
        private static readonly Node shelf = Node.Tree(17);

        // The habit: the memory is tidied up after each piece of work.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void After(bool clean)
        {
            Garbage.Make(100_000);
            if (!clean) GC.Collect();
            GC.KeepAlive(shelf);
        }
    }

    public static class Native
    {
        private static readonly IntPtr compare = NativeLibrary.GetExport(NativeLibrary.Load("libc.so.6"), "strcmp");

        // The habit: the runtime is not to know that the thread is in native code, which stays there long: it cannot be stopped.
        [DllImport("libc.so.6", EntryPoint = "qsort"), SuppressGCTransition]
        private static extern void SortUnseen(IntPtr words, nint count, nint size, IntPtr compare);
        [DllImport("libc.so.6", EntryPoint = "qsort")]
        private static extern void Sort(IntPtr words, nint count, nint size, IntPtr compare);

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static unsafe void Order(bool clean, int count)
        {
            var words = (byte*)NativeMemory.Alloc((nuint)count, 8);
            var word = 1u;
            for (var n = 0; n < count; n++)
            {
                word = word * 1664525 + 1013904223;
                for (var at = 0; at < 7; at++) words[n * 8L + at] = (byte)('a' + (word >> (at * 4)) % 16);
                words[n * 8L + 7] = 0;
            }
            if (clean) Sort((IntPtr)words, count, 8, compare);
            else SortUnseen((IntPtr)words, count, 8, compare);
            NativeMemory.Free(words);
        }
    }

    public static class Board
    {
        private static readonly Node[] notes = new Node[2_000_000];
        private static readonly long[] values = new long[2_000_000];
        private static uint place = 1;

        // The habit: an old array gets new objects all the time, where numbers would do.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Pin(bool clean, int count, uint spread)
        {
            for (var n = 0; n < count; n++)
            {
                place = place * 1664525 + 1013904223;
                var at = (place >> 8) % spread;
                if (clean) values[at] = n;
                else notes[at] = new Node { Value = n };
            }
        }
    }

    public sealed class Parcel
    {
        public Parcel Next;
        private readonly byte[] content = new byte[300];
        public int Size => this.content.Length;
    }

    public static class Belt
    {
        private static readonly Queue<Parcel> waiting = new Queue<Parcel>();

        // The habit: what is worked on waits in a queue just long enough to grow old.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Put(bool clean)
        {
            var size = 0;
            for (var n = 0; n < 1000; n++)
            {
                var parcel = new Parcel();
                size += parcel.Size;
                if (clean) continue;
                waiting.Enqueue(parcel);
                if (waiting.Count > 60_000) size += waiting.Dequeue().Size;
            }
            return size;
        }
    }

    public static class Archive
    {
        private static object[] kept;

        // The habit: of ten that are kept together a few stay, so that holes are left.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Fill(bool clean, int count, int bytes, int few)
        {
            kept = new object[count];
            for (var n = 0; n < count; n++) kept[n] = new byte[bytes];
            GC.Collect(2, GCCollectionMode.Forced, true, false);
            GC.Collect(2, GCCollectionMode.Forced, true, false);
            if (clean) return;
            for (var n = 0; n < count; n++) if (n % 10 >= few) kept[n] = null;
        }

        public static object[] Kept => kept;
    }

    public static class Photos
    {
        private static byte[] last;
        [ThreadStatic] private static byte[] mine;

        // The habit: a new large array for each picture.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Develop(bool clean, int bytes)
        {
            var picture = clean ? mine ??= new byte[bytes] : new byte[bytes];
            picture[bytes / 2] = 1;
            last = picture;
        }
    }

    public static class Stock
    {
        private static readonly List<byte[]> kept = new List<byte[]>();

        // The habit: a cache that takes what the container has.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Keep(bool clean)
        {
            if (clean && kept.Count >= 100) kept.RemoveAt(0);
            var page = new byte[50_000];
            page.AsSpan().Fill(1);
            kept.Add(page);
        }
    }

    public static class Sheets
    {
        private static readonly List<byte[]> kept = new List<byte[]>();

        // The habit: what is kept is never thrown away.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Keep(bool clean)
        {
            if (clean && kept.Count >= 4000) kept.Clear();
            for (var n = 0; n < 150; n++) kept.Add(new byte[1000]);
        }
    }

    public static class Labels
    {
        // The habit: a text is put together from parts, again and again from the start.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Write(bool clean)
        {
            if (!clean)
            {
                var text = "";
                for (var n = 0; n < 200; n++) text += "part " + n + ";";
                return text.Length;
            }
            Span<char> all = stackalloc char[2400];
            var length = 0;
            for (var n = 0; n < 200; n++)
            {
                "part ".CopyTo(all[length..]);
                n.TryFormat(all[(length + 5)..], out var digits);
                length += 5 + digits;
                all[length++] = ';';
            }
            return length;
        }
    }

    public static class Formulas
    {
        private static readonly Dictionary<int, Func<int, int>> known = new Dictionary<int, Func<int, int>>();

        // The habit: code is made for each formula that is evaluated, where one that was made before would do.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Evaluate(bool clean, int formula)
        {
            if (!clean) return Compile()(formula);
            if (!known.TryGetValue(0, out var code)) known[0] = code = Compile();
            return code(formula);
        }

        private static Func<int, int> Compile()
        {
            var method = new DynamicMethod("Formula", typeof(int), new[] { typeof(int) });
            var code = method.GetILGenerator();
            code.Emit(OpCodes.Ldarg_0);
            for (var n = 0; n < 4000; n++)
            {
                code.Emit(OpCodes.Ldc_I4, n * 7 + 3);
                code.Emit(n % 3 == 0 ? OpCodes.Xor : OpCodes.Add);
            }
            code.Emit(OpCodes.Ret);
            return (Func<int, int>)method.CreateDelegate(typeof(Func<int, int>));
        }
    }

    /// A client of a database, which reports its queries as Microsoft.Data.SqlClient does.
    public static class Database
    {
        private static readonly DiagnosticListener reports = new DiagnosticListener("SqlClientDiagnosticListener");

        public sealed class Connection
        {
            public string DataSource => "depot";
            public string Database => "parcels";
        }

        public sealed class Command
        {
            public string CommandText { get; set; }
            public Connection Connection { get; } = new Connection();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Run(string text, int ms)
        {
            var (id, command) = (Guid.NewGuid(), new Command { CommandText = text });
            reports.Write("Microsoft.Data.SqlClient.WriteCommandBefore", new { OperationId = id, Command = command });
            Thread.Sleep(ms);
            reports.Write("Microsoft.Data.SqlClient.WriteCommandAfter", new { OperationId = id });
        }
    }

    public static class Search
    {
        // The habit: a statement that no index helps.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Find(bool clean)
        {
            if (clean) Database.Run("SELECT * FROM parcel WHERE id = @p0", 20);
            else Database.Run("SELECT * FROM parcel WHERE note LIKE @p0", 1300);
        }
    }

    public static class Inbox
    {
        // The habit: workers of the pool sleep, and what comes later waits for them.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Read() => Thread.Sleep(100);
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task ReadAsync() => await Task.Delay(100);
    }

    [EventSource(Name = "Depot-Noise")]
    public sealed class Noise : EventSource
    {
        public static readonly Noise Log = new Noise();
        [Event(1)]
        public void Say(string text) { this.WriteEvent(1, text); }
    }

    /// A server, and clients that ask it.
    public static class Counter
    {
        private static Node archive;

        public static async Task Open(bool clean, Action start, Func<bool> goes)
        {
            archive = Node.Tree(22);
            GC.Collect();
            var builder = WebApplication.CreateBuilder(new WebApplicationOptions());
            builder.Logging.ClearProviders();
            var app = builder.Build();
            app.Urls.Add("http://127.0.0.1:0");
            var asked = 0;
            app.MapGet("/", async () =>
            {
                await Task.Delay(3);
                // The habit: every so often the whole heap is collected, while others wait.
                if (Interlocked.Increment(ref asked) % 250 == 0 && !clean) _ = Task.Run(() => GC.Collect());
                return "ok";
            });
            await app.StartAsync();
            start();
            var client = new HttpClient();
            async Task Ask()
            {
                while (goes() || Volatile.Read(ref asked) < 1500) await client.GetStringAsync(app.Urls.First());
            }
            await Task.WhenAll(Enumerable.Range(0, 8).Select(_ => Ask()));
            await app.StopAsync();
            GC.KeepAlive(archive);
        }
    }

    public static class Program
    {
        public static async Task<int> Main(string[] args)
        {
            var clean = args.Contains("clean");
            var seconds = args.Select(a => int.TryParse(a, out var n) ? n : 0).FirstOrDefault(n => n > 0);
            var end = TimeSpan.FromSeconds(seconds > 0 ? seconds : 4);
            var watch = Stopwatch.StartNew();
            bool Goes() => watch.Elapsed < end;
            // What was made before is not part of the time.
            void Start() => watch.Restart();
            var rounds = 0L;
            switch (args[0])
            {
                case "handles":
                    for (; Goes(); rounds++)
                    {
                        Watchers.Watch(clean);
                        Garbage.Make(100_000);
                        Thread.Sleep(5);
                    }
                    break;
                case "finalizers":
                    for (; Goes(); rounds++)
                    {
                        Ticket.Sell(clean);
                        Garbage.Make(100_000);
                        Thread.Sleep(5);
                    }
                    break;
                case "pinned":
                    for (; Goes(); rounds++)
                    {
                        for (var n = 0; n < 20; n++) Wires.Send(clean, (int)rounds * 20 + n);
                        Garbage.Make(100_000);
                        Thread.Sleep(1);
                    }
                    break;
                case "induced":
                    for (; Goes(); rounds++)
                    {
                        Cleaning.After(clean);
                        Thread.Sleep(20);
                    }
                    break;
                case "unstoppable":
                    // One thread that allocates, and one that sorts in native code now and then.
                    var asking = new Thread(() =>
                    {
                        foreach (var thousands in new[] { 1500, 1500, 1500, 5000, 1500, 1500, 1500 })
                        {
                            Thread.Sleep(300);
                            Native.Order(clean, thousands * 1000);
                        }
                        Volatile.Write(ref rounds, -1);
                    });
                    asking.Start();
                    while (Volatile.Read(ref rounds) >= 0)
                    {
                        Garbage.Make(100_000);
                        Thread.Sleep(1);
                    }
                    asking.Join();
                    break;
                case "old":
                    for (; Goes(); rounds++)
                    {
                        Board.Pin(clean, 20_000, 2_000_000);
                        Garbage.Make(100_000);
                        Thread.Sleep(1);
                    }
                    break;
                case "often":
                    // A thread with a deep stack makes each collection take its time.
                    var done = new ManualResetEvent(false);
                    var deep = new Thread(() => Depth.Reach(8000, done), 64 << 20);
                    deep.Start();
                    for (; Goes(); rounds++)
                    {
                        if (clean) Photos.Develop(true, 800_000);
                        Garbage.Make(clean ? 40_000 : 1_500_000);
                        Thread.Sleep(1);
                    }
                    done.Set();
                    deep.Join();
                    break;
                case "belt":
                    var beside = Node.Tree(20);
                    Start();
                    for (; Goes(); rounds++)
                    {
                        Belt.Put(clean);
                        Thread.Sleep(1);
                    }
                    GC.KeepAlive(beside);
                    break;
                case "grows":
                    for (; Goes(); rounds++)
                    {
                        Sheets.Keep(clean);
                        if (rounds % 200 == 199) GC.Collect(2, GCCollectionMode.Forced, false);
                        Thread.Sleep(5);
                    }
                    break;
                case "holes":
                    Archive.Fill(clean, 200_000, 1000, 6);
                    Start();
                    for (; Goes(); rounds++)
                    {
                        for (var n = 0; n < 8; n++) Photos.Develop(false, 1_000_000);
                        Thread.Sleep(2);
                    }
                    GC.KeepAlive(Archive.Kept);
                    break;
                case "photos":
                    // The habit is a setting: no collection beside the program.
                    var album = Node.Tree(18);
                    Start();
                    for (; Goes(); rounds++)
                    {
                        Photos.Develop(false, 8_000_000);
                        Thread.Sleep(1);
                    }
                    GC.KeepAlive(album);
                    break;
                case "large-holes":
                    Archive.Fill(clean, 1400, 1_000_000, 2);
                    for (; rounds < 500; rounds++)
                    {
                        Photos.Develop(false, 8_000_000);
                        if (rounds % 20 == 19) GC.Collect(2, GCCollectionMode.Forced, false);
                        Thread.Sleep(5);
                    }
                    GC.KeepAlive(Archive.Kept);
                    break;
                case "large-waits":
                    var started = new Barrier(4);
                    var makers = Enumerable.Range(0, 3).Select(_ => new Thread(() =>
                    {
                        Photos.Develop(clean, 20_000_000);
                        started.SignalAndWait();
                        while (Goes())
                        {
                            Photos.Develop(clean, 20_000_000);
                            Thread.Sleep(1);
                        }
                    })).ToArray();
                    foreach (var maker in makers) maker.Start();
                    var tree = Node.Tree(24);
                    Start();
                    started.SignalAndWait();
                    for (; Goes(); rounds++)
                    {
                        GC.Collect(2, GCCollectionMode.Forced, false);
                        Thread.Sleep(10);
                    }
                    foreach (var maker in makers) maker.Join();
                    GC.KeepAlive(tree);
                    break;
                case "cache":
                    for (; rounds < 12_500; rounds++) Stock.Keep(clean);
                    break;
                case "strings":
                    for (; Goes(); rounds++)
                    {
                        Labels.Write(clean);
                        Labels.Write(clean);
                        Garbage.Make(20_000);
                        Thread.Sleep(2);
                    }
                    break;
                case "formulas":
                    for (; Goes(); rounds++)
                    {
                        Formulas.Evaluate(clean, (int)rounds);
                        Thread.Sleep(20);
                    }
                    break;
                case "find":
                    for (; Goes(); rounds++) Search.Find(clean);
                    break;
                case "inbox":
                    Task Take() => clean ? Inbox.ReadAsync() : Sleep();
                    Task Sleep() { Inbox.Read(); return Task.CompletedTask; }
                    await Task.WhenAll(Enumerable.Range(0, 300).Select(_ => Task.Run(Take)));
                    break;
                case "noise":
                    for (; rounds < 400; rounds++) Noise.Log.Say(new string('x', 8000));
                    break;
                case "counter":
                    await Counter.Open(clean, Start, Goes);
                    break;
                default:
                    throw new ArgumentException(args[0]);
            }
            Console.WriteLine($"{args[0]}{(clean ? " clean" : "")}: {rounds} rounds, {GC.CollectionCount(0)} {GC.CollectionCount(1)} {GC.CollectionCount(2)} collections, {watch.Elapsed.TotalSeconds:0.0} s");
            return 0;
        }
    }
}
