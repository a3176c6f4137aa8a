// A program that writes down what it did, while it is recorded: requests with known outcomes, counters with known values, a thread
// pool that is starved. The figures of its recordings are held against that. For .NET 10 with ASP.NET Core.
//
//   Figures requests | counters | starved | calm
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.Linq;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Routing;
using Microsoft.Extensions.Logging;

static class Figures
{
    static void Tell(FormattableString text) { Console.WriteLine(FormattableString.Invariant(text)); }

    static void Main(string[] arguments)
    {
        switch (arguments[0])
        {
            case "requests": Requests().Wait(); break;
            case "counters": Counters(); break;
            case "starved": Pool(true); break;
            case "calm": Pool(false); break;
            default: throw new ArgumentException(arguments[0]);
        }
    }

    // ---- a server, and a client that counts how its requests ended

    static async Task Requests()
    {
        WebApplicationBuilder builder = WebApplication.CreateBuilder(new WebApplicationOptions());
        builder.Logging.ClearProviders();
        WebApplication app = builder.Build();
        app.Urls.Add("http://127.0.0.1:0");
        app.MapGet("/ok", () => "ok");
        app.MapGet("/busy", () => Results.StatusCode(503));
        app.MapGet("/throws", new RequestDelegate(context => throw new InvalidOperationException("as it should")));
        await app.StartAsync();
        string address = app.Urls.First();
        HttpClient client = new HttpClient();
        Dictionary<string, int> ended = new Dictionary<string, int>();
        string[] paths = { "/ok", "/ok", "/busy", "/ok", "/none", "/throws", "/ok", "/ok" };
        for (int n = 0; n < 64; n++)
        {
            HttpResponseMessage answer = await client.GetAsync(address + paths[n % paths.Length]);
            await answer.Content.ReadAsStringAsync();
            string code = ((int)answer.StatusCode).ToString(CultureInfo.InvariantCulture);
            ended[code] = ended.GetValueOrDefault(code) + 1;
        }
        await app.StopAsync();
        for (int n = 0; n < 2; n++)
        {
            try { await client.GetAsync(address + "/ok"); }
            catch (HttpRequestException) { ended["none"] = ended.GetValueOrDefault("none") + 1; }
        }
        foreach (KeyValuePair<string, int> pair in ended) Tell($"answer {pair.Key} {pair.Value}");
        Thread.Sleep(300);
    }

    // ---- counters: some intervals have many measurements, some few, some none

    [EventSource(Name = "Tracequet-Figures")]
    sealed class Source : EventSource
    {
        public EventCounter Latency;
        public IncrementingEventCounter Done;
        protected override void OnEventCommand(EventCommandEventArgs command)
        {
            if (command.Command != EventCommand.Enable || Latency != null) return;
            Latency = new EventCounter("latency", this);
            Done = new IncrementingEventCounter("done", this);
        }
    }

    static void Counters()
    {
        Source source = new Source();
        KeyValuePair<string, object> Tag(string name, object value) => new KeyValuePair<string, object>(name, value);
        Meter meter = new Meter("Tracequet.Figures", "1.2", new[] { Tag("region", "north") }, "a scope");
        Counter<long> orders = meter.CreateCounter<long>("orders", "{order}", "Orders", new[] { Tag("shop", 7) });
        while (source.Latency == null) Thread.Sleep(10);
        Thread.Sleep(500);
        double sum = 0;
        int count = 0, done = 0, total = 0;
        for (int round = 0; round < 8; round++)
        {
            int many = round % 4 == 0 ? 90 : round % 4 == 1 ? 10 : 0;
            double value = many == 90 ? 50 : 10;
            for (int n = 0; n < many; n++)
            {
                source.Latency.WriteMetric(value);
                sum += value;
                count++;
            }
            source.Done.Increment(round);
            done += round;
            orders.Add(round * 10);
            total += round * 10;
            Thread.Sleep(330);
        }
        Thread.Sleep(1000);
        Tell($"latency {sum} {count}");
        Tell($"done {done}");
        Tell($"orders {total}");
    }

    // ---- a pool of two workers whose threads wait for tasks, or do not

    static void Pool(bool blocks)
    {
        ThreadPool.SetMinThreads(2, 2);
        int before = ThreadPool.ThreadCount;
        List<Task> tasks = new List<Task>();
        int most = 0;
        for (int n = 0; n < 24; n++)
        {
            tasks.Add(Task.Run(() =>
            {
                if (blocks) Task.Delay(400).Wait();
                InterlockedMax(ref most, ThreadPool.ThreadCount);
            }));
        }
        Task.WaitAll(tasks.ToArray());
        Tell($"threads {before} {most}");
        Thread.Sleep(300);
    }

    static void InterlockedMax(ref int most, int value)
    {
        for (int known = most; known < value; known = most) Interlocked.CompareExchange(ref most, value, known);
    }
}
