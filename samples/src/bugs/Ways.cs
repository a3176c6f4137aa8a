// More habits, each with the same work without it: what rules of `tracequet explain` name by samples, threads, connections, loads,
// arrays of a pool, logs, timers, starts and waits of requests. For .NET 10 with ASP.NET Core, whose logger is used.
//
//   Ways MODE [clean] [SECONDS]        record-habits.sh has the modes
using System;
using System.Buffers;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Extensions.Logging;

namespace Depot
{
    public static class Register
    {
        public static long Found;

        // The habit: a list is searched from its start for each entry.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Task Count(bool clean)
        {
            var list = new List<int>();
            var set = new HashSet<int>();
            for (var n = 0; n < 6000; n++)
            {
                var isNew = true;
                if (clean) isNew = set.Add(n % 5000);
                else for (var at = 0; at < list.Count && isNew; at++) isNew = list[at] != n % 5000;
                if (isNew) list.Add(n % 5000);
            }
            Found += list.Count;
            return Task.CompletedTask;
        }
    }

    public static class Letters
    {
        private static long sum;

        // The habit: a thread for each letter.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Task Send(bool clean)
        {
            if (clean) return Task.Run(Fold);
            new Thread(() => Letters.Send(true).Wait()).Start();
            return Task.CompletedTask;
        }

        private static void Fold() => sum += Environment.TickCount64;
    }

    public static class Rates
    {
        private static readonly HttpClient one = new();
        public static int Port;

        // The habit: a client, and so a connection, for each call.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task Ask(bool clean)
        {
            var client = clean ? one : new HttpClient();
            await client.GetStringAsync($"http://127.0.0.1:{Port}/rate");
            if (!clean) client.Dispose();
        }

        public static void Open()
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start(200);
            Port = ((IPEndPoint)listener.LocalEndpoint).Port;
            _ = Task.Run(async () => { while (true) _ = Answer(await listener.AcceptTcpClientAsync()); });
        }

        private static async Task Answer(TcpClient caller)
        {
            using var _ = caller;
            var (stream, buffer) = (caller.GetStream(), new byte[4096]);
            var answer = Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            while (await stream.ReadAsync(buffer) > 0) await stream.WriteAsync(answer);
        }
    }

    public static class Addins
    {
        private static readonly byte[] image = File.ReadAllBytes(typeof(Addins).Assembly.Location);
        private static AssemblyLoadContext kept;

        // The habit: an assembly is loaded each time that it is used.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Task Run(bool clean)
        {
            if (clean && kept != null) return Task.CompletedTask;
            kept = new AssemblyLoadContext("addin", isCollectible: true);
            kept.LoadFromStream(new MemoryStream(image)).GetType("Depot.Letters");
            return Task.CompletedTask;
        }
    }

    public static class Stamps
    {
        // The habit: what is rented is not returned.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Task Print(bool clean)
        {
            var buffer = ArrayPool<byte>.Shared.Rent(100_000);
            buffer[100] = 1;
            if (clean) ArrayPool<byte>.Shared.Return(buffer);
            last = new byte[2000];
            return Task.CompletedTask;
        }

        private static byte[] last;
    }

    public sealed class Lease : IDisposable
    {
        private readonly byte[] page = new byte[200];

        // The habit: a finalizer that waits, of objects that are not disposed of.
        ~Lease() { Thread.Sleep(this.page.Length / 100); }

        public void Dispose() { GC.SuppressFinalize(this); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Task Take(bool clean)
        {
            for (var n = 0; n < 20; n++)
            {
                var lease = new Lease();
                if (clean) lease.Dispose();
            }
            last = new byte[60_000];
            return Task.CompletedTask;
        }

        private static byte[] last;
    }

    public static class Outbox
    {
        private static readonly SemaphoreSlim gate = new(1);

        // The habit: one sends at a time, and holds the semaphore over the call.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task Send(bool clean)
        {
            if (!clean) await gate.WaitAsync();
            await Task.Delay(60);
            if (!clean) gate.Release();
        }
    }

    public static class Distances
    {
        private static readonly double[] table = new double[2000];

        // The habit: a table is made before the first request. Without the habit nobody needs it.
        static Distances()
        {
            var start = Environment.TickCount64;
            for (var n = 0; Environment.TickCount64 - start < 4000; n++)
                table[n % table.Length] += Math.Sqrt(n % 977);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static double Of(int place) => table[place % table.Length];
    }

    public static class Mailbox
    {
        private static readonly SemaphoreSlim mail = new(0);
        private static int letters;

        // The habit: each box looks for mail all the time. Without the habit it waits for it.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task Look(bool clean)
        {
            while (true)
            {
                if (clean) await mail.WaitAsync();
                else while (Volatile.Read(ref letters) == 0) await Task.Delay(1);
                Interlocked.Exchange(ref letters, 0);
            }
        }

        public static Task Bring(bool clean)
        {
            Interlocked.Increment(ref letters);
            if (clean) mail.Release();
            return Task.CompletedTask;
        }
    }

    // Hands over what is logged to nobody, as a console that is closed.
    public sealed class Shredder : ILoggerProvider, ILogger
    {
        public static long Letters;
        public ILogger CreateLogger(string category) => this;
        public IDisposable BeginScope<T>(T state) => null;
        public bool IsEnabled(LogLevel level) => level >= LogLevel.Information;
        public void Log<T>(LogLevel level, EventId id, T state, Exception error, Func<T, Exception, string> text) => Letters += text(state, error).Length;
        public void Dispose() { }
    }

    public static class Picking
    {
        private static readonly ILogger log = LoggerFactory.Create(make => make.AddProvider(new Shredder())).CreateLogger("Depot.Picking");
        private static int[] shelves;

        // The habit: a message for each shelf. Without the habit it is one for all of them.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Task Pick(bool clean)
        {
            shelves = new int[3000];
            for (var shelf = 0; shelf < shelves.Length; shelf++)
            {
                for (var place = 0; place < 100; place++) shelves[shelf] += place % 7;
                if (!clean) log.LogInformation("Shelf {Shelf}: {Picked} picked by {Name}", shelf, shelves[shelf], "depot");
            }
            if (clean) log.LogInformation("{Picked} picked by {Name}", shelves.Sum(), "depot");
            return Task.CompletedTask;
        }
    }

    public static class Contracts
    {
        private static readonly Queue<TcpClient> lines = new();
        public static int Port;

        // The habit: one question for each clause. Without the habit it is one question for all.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task<int> Print(bool clean)
        {
            var size = 0;
            foreach (var clause in Enumerable.Range(0, clean ? 1 : 25)) size += await Clause(clean ? "all" : clause.ToString());
            return size;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static async Task<int> Clause(string name)
        {
            TcpClient line = null;
            lock (lines) lines.TryDequeue(out line);
            line ??= new TcpClient("127.0.0.1", Port);
            var (stream, answer) = (line.GetStream(), new byte[64]);
            await stream.WriteAsync(Encoding.ASCII.GetBytes(name));
            var size = await stream.ReadAsync(answer);
            lock (lines) lines.Enqueue(line);
            return size;
        }

        public static void Open()
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start(200);
            Port = ((IPEndPoint)listener.LocalEndpoint).Port;
            // Not on the pool: what answers is another program.
            new Thread(() => { while (true) { var caller = listener.AcceptTcpClient(); new Thread(() => Answer(caller)) { IsBackground = true }.Start(); } })
                { IsBackground = true }.Start();
        }

        private static void Answer(TcpClient caller)
        {
            using var _ = caller;
            var (stream, question) = (caller.GetStream(), new byte[64]);
            for (int size; (size = stream.Read(question)) > 0; stream.Write(question, 0, size)) Thread.Sleep(3);
        }
    }

    // Requests as ASP.NET Core reports them.
    [EventSource(Name = "Microsoft.AspNetCore.Hosting")]
    public sealed class Site : EventSource
    {
        private static readonly Site log = new();
        [Event(3)] public void RequestStart(string method, string path) => this.WriteEvent(3, method, path);
        [Event(4)] public void RequestStop() => this.WriteEvent(4);

        public static void Run(string mode, bool clean, int seconds)
        {
            if (mode == "opens" && !clean) Distances.Of(7);
            if (mode == "clauses") Contracts.Open();
            var start = Environment.TickCount64;
            for (; Environment.TickCount64 - start < seconds * 1000; Thread.Sleep(40)) Task.Run(() => Serve(mode, clean)).Wait();
            Environment.Exit(0);
        }

        private static async Task Serve(string mode, bool clean)
        {
            log.RequestStart("GET", "/" + mode);
            if (mode == "clauses") await Contracts.Print(clean);
            log.RequestStop();
        }
    }

    // The habit: two events have one number, so that the source writes none.
    [EventSource(Name = "Depot-Parcels")]
    public sealed class MixedParcels : EventSource
    {
        public static readonly MixedParcels Log = new();
        [Event(1)] public void PackStart(string parcel) => this.WriteEvent(1, parcel);
        [Event(1)] public void PackStop(string parcel) => this.WriteEvent(1, parcel);
    }

    [EventSource(Name = "Depot-Parcels")]
    public sealed class Parcels : EventSource
    {
        public static readonly Parcels Log = new();
        [Event(1)] public void PackStart(string parcel) => this.WriteEvent(1, parcel);
        [Event(2)] public void PackStop(string parcel) => this.WriteEvent(2, parcel);

        public static Task Pack(bool clean)
        {
            if (clean) Log.PackStart("books"); else MixedParcels.Log.PackStart("books");
            if (clean) Log.PackStop("books"); else MixedParcels.Log.PackStop("books");
            return Task.CompletedTask;
        }
    }

    public static class Ways
    {
        public static async Task Main(string[] args)
        {
            var clean = args.Length > 1 && args[1] == "clean";
            var seconds = int.TryParse(args[^1], out var given) ? given : 8;
            if (args[0] is "opens" or "clauses") Site.Run(args[0], clean, seconds);
            var (work, perSecond) = args[0] switch
            {
                "hot" => ((Func<bool, Task>)Register.Count, 150),
                "spawns" => (Letters.Send, 120),
                "dials" => (Rates.Ask, 20),
                "addins" => (Addins.Run, 12),
                "rents" => (Stamps.Print, 400),
                "stuck" => (Lease.Take, 60),
                "parcels" => (Parcels.Pack, 20),
                "outbox" => (Outbox.Send, 50),
                "picks" => (Picking.Pick, 100),
                "polls" => (Mailbox.Bring, 20),
                _ => throw new ArgumentException(args[0]),
            };
            if (args[0] == "dials") Rates.Open();
            if (args[0] == "polls") for (var box = 0; box < 16; box++) _ = Mailbox.Look(clean);
            var start = Environment.TickCount64;
            for (long sent = 0; Environment.TickCount64 - start < seconds * 1000; Thread.Sleep(5))
                for (; sent < (Environment.TickCount64 - start) * perSecond / 1000; sent++)
                    _ = Task.Run(() => work(clean));
            await Task.Yield();
            Environment.Exit(0);
        }
    }
}
