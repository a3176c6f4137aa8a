// Eight bugs under load, and the same work without each: the recordings bug-*.nettrace, on which the rules of `tracequet explain` are tested.
//
//   Bugs leak|sync|large|boxing|convoy|exceptions|queries|calls [clean] [SECONDS]
//
// Each is a server in small: workers of the thread pool answer requests, as many at a time as there are clients.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Shop
{
    /// What keeps whoever asks for news.
    public static class News
    {
        public static event Action<string> Changed;
        public static int Count => Changed?.GetInvocationList().Length ?? 0;
    }

    /// What a customer looks at.
    public sealed class Session
    {
        private readonly byte[] page = new byte[20_000];
        private readonly List<string> seen = new List<string>();

        public Session(bool listens)
        {
            // The bug: nobody takes it off again, so that every session lives on.
            if (listens) News.Changed += this.OnChanged;
            for (var n = 0; n < 20; n++) this.seen.Add("article " + n);
        }

        private void OnChanged(string what) => this.seen.Add(what);
        public int Size => this.page.Length + this.seen.Count;
    }

    public static class Visits
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(bool clean) => new Session(!clean).Size;
    }

    public static class Prices
    {
        // The bug: a worker waits for what other workers have to end.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(bool clean) => clean ? 0 : Load().Result;
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task<int> AnswerAsync() => await Load();

        private static async Task<int> Load()
        {
            await Task.Delay(20);
            return 7;
        }
    }

    public static class Pictures
    {
        [ThreadStatic] private static byte[] kept;

        // The bug: a new array of 200 KB for each request.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(bool clean)
        {
            var pixels = clean ? kept ??= new byte[200_000] : new byte[200_000];
            for (var n = 0; n < pixels.Length; n += 4096) pixels[n] = (byte)n;
            return pixels.Length;
        }
    }

    public static class Totals
    {
        // The bug: a list of objects, so that each number becomes one.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(bool clean)
        {
            var sum = 0;
            if (clean)
            {
                Span<int> parts = stackalloc int[1000];
                for (var n = 0; n < 1000; n++) parts[n] = n;
                foreach (var part in parts) sum += part;
                return sum;
            }
            object last = null;
            for (var round = 0; round < 5; round++)
            {
                for (var n = 0; n < 1000; n++)
                {
                    last = n + round;
                    sum += (int)last;
                }
            }
            return sum;
        }
    }

    public static class Stock
    {
        private static readonly object gate = new object();
        private static int left;

        // The bug: one lock around all of the work.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(bool clean)
        {
            if (clean)
            {
                Work();
                return Interlocked.Increment(ref left);
            }
            lock (gate)
            {
                Work();
                return left++;
            }
        }

        private static void Work() => Thread.Sleep(2);
    }

    public static class Orders
    {
        // The bug: what a customer types is checked by an exception.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Answer(bool clean)
        {
            var text = "order 12";
            var sum = 0;
            for (var n = 0; n < 4; n++)
            {
                if (clean)
                {
                    sum += int.TryParse(text, out var number) ? number : 0;
                    continue;
                }
                try
                {
                    sum += Read(text);
                }
                catch (FormatException)
                {
                    sum--;
                }
            }
            return sum;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static int Read(string text)
        {
            if (text[0] != '#') throw new FormatException("no number: " + text);
            return int.Parse(text.Substring(1));
        }
    }

    public static class Baskets
    {
        private static readonly ActivitySource requests = new ActivitySource("Shop.Requests");
        private static readonly ActivitySource database = new ActivitySource("Shop.Database");

        // The bug: a query for each line, where one gives all.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task<int> AnswerAsync(bool clean)
        {
            using var request = requests.StartActivity("basket");
            var lines = await Query("SELECT id FROM line WHERE basket = @p0");
            if (clean) return lines + await Query("SELECT * FROM article WHERE id IN (SELECT article FROM line WHERE basket = @p0)");
            for (var n = 0; n < 15; n++) lines += await Query("SELECT * FROM article WHERE id = " + n);
            return lines;
        }

        private static async Task<int> Query(string text)
        {
            using var query = database.StartActivity("query", ActivityKind.Client);
            query?.SetTag("db.system.name", "postgresql");
            query?.SetTag("db.query.text", text);
            await Task.Delay(1);
            return 1;
        }
    }

    public static class Shelves
    {
        private static readonly ActivitySource requests = new ActivitySource("Shop.Requests");
        private static readonly HttpClient client = new HttpClient();
        private static readonly string address = Articles.Listen();

        // The bug: a request to another server for each article, where one gives all.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static async Task<int> AnswerAsync(bool clean)
        {
            using var request = requests.StartActivity("shelf");
            if (clean) return (await client.GetStringAsync(address + "articles?of=shelf")).Length;
            var sum = 0;
            for (var n = 0; n < 15; n++) sum += (await client.GetStringAsync(address + "articles/" + n)).Length;
            return sum;
        }
    }

    /// The other server: it says ok to each request, on connections that stay.
    public static class Articles
    {
        private static readonly byte[] ok = Encoding.ASCII.GetBytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");

        public static string Listen()
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            _ = Task.Run(async () => { while (true) _ = Serve(await listener.AcceptTcpClientAsync()); });
            return "http://127.0.0.1:" + ((IPEndPoint)listener.LocalEndpoint).Port + "/";
        }

        private static async Task Serve(TcpClient caller)
        {
            var stream = caller.GetStream();
            var bytes = new byte[4096];
            var text = "";
            for (int read; (read = await stream.ReadAsync(bytes)) > 0;)
            {
                text += Encoding.ASCII.GetString(bytes, 0, read);
                for (int end; (end = text.IndexOf("\r\n\r\n")) >= 0; text = text.Substring(end + 4)) await stream.WriteAsync(ok);
            }
        }
    }

    public static class Program
    {
        public static async Task<int> Main(string[] args)
        {
            var clean = args.Contains("clean");
            var seconds = args.Select(a => int.TryParse(a, out var n) ? n : 0).FirstOrDefault(n => n > 0);
            var until = Stopwatch.StartNew();
            var end = TimeSpan.FromSeconds(seconds > 0 ? seconds : 12);
            var (clients, pause) = args[0] switch
            {
                "leak" => (4, 1),
                "sync" => (40, 5),
                "large" => (2, 2),
                "boxing" => (2, 1),
                "convoy" => (6, 2),
                "exceptions" => (2, 1),
                _ => (3, 20),
            };
            var answered = 0L;
            async Task Client()
            {
                while (until.Elapsed < end)
                {
                    await Task.Run(() => Answer(args[0], clean));
                    Interlocked.Increment(ref answered);
                    await Task.Delay(pause);
                }
            }
            await Task.WhenAll(Enumerable.Range(0, clients).Select(_ => Client()));
            Console.WriteLine($"{args[0]}{(clean ? " clean" : "")}: {answered} requests, {News.Count} listen");
            return 0;
        }

        private static Task<int> Answer(string what, bool clean) => what switch
        {
            "leak" => Task.FromResult(Visits.Answer(clean)),
            "sync" => clean ? Prices.AnswerAsync() : Task.FromResult(Prices.Answer(clean)),
            "large" => Task.FromResult(Pictures.Answer(clean)),
            "boxing" => Task.FromResult(Totals.Answer(clean)),
            "convoy" => Task.FromResult(Stock.Answer(clean)),
            "exceptions" => Task.FromResult(Orders.Answer(clean)),
            "calls" => Shelves.AnswerAsync(clean),
            _ => Baskets.AnswerAsync(clean),
        };
    }
}
