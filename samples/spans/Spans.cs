// Jobs of a queue, which are no requests of HTTP: spans within each other, log messages, allocations. The program writes down what it did, a JSON
// object a line: the ids of its spans, its messages, and where in the IL its allocations are, as System.Reflection.Metadata reads it from the
// compiled program. For .NET 10 with ASP.NET Core, whose shared framework has the logging.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Runtime.CompilerServices;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Extensions.Logging;

namespace Shop
{
    sealed class Receipt { }
    sealed class Invoice { }

    static class Jobs
    {
        static readonly ActivitySource queue = new ActivitySource("Shop.Queue");
        static readonly List<object> told = new List<object>();
        static ILogger log, audit;
        static object kept;

        static void Tell(object what) { lock (told) told.Add(what); }

        static void TellSpan(Activity span) => Tell(new
        {
            what = "span", name = span.DisplayName, trace = span.TraceId.ToHexString(), span = span.SpanId.ToHexString(),
            parent = span.ParentSpanId == default ? null : span.ParentSpanId.ToHexString(),
        });

        static void TellLog(string level, string category, int id, string message, string template, object arguments, string exception = null) =>
            Tell(new
            {
                what = "log", level, category, id, message, template, arguments, exception,
                trace = Activity.Current?.TraceId.ToHexString(), span = Activity.Current?.SpanId.ToHexString(),
            });

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Pause() => Thread.Sleep(1);

        // Two large arrays of different types: each is reported.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Allocate()
        {
            Pause();
            kept = new Receipt[30_000];
            Pause();
            kept = new Invoice[40_000];
            Pause();
        }

        static void Spin(int ms)
        {
            long since = Stopwatch.GetTimestamp();
            double sum = 0;
            while (Stopwatch.GetElapsedTime(since).TotalMilliseconds < ms) sum += Math.Sqrt(sum + 1);
        }

        static async Task Charge(int job)
        {
            using Activity span = queue.StartActivity("charge");
            TellSpan(span);
            Spin(10);
            await Task.Delay(5);
            Allocate();
            log.LogWarning(new EventId(7, "Slow"), "Charging {Job} took {Ms} ms", job, 10.5);
            TellLog("warning", "Shop.Jobs", 7, $"Charging {job} took 10.5 ms", "Charging {Job} took {Ms} ms", new { Job = job.ToString(), Ms = "10.5" });
        }

        static async Task Job(int job)
        {
            using Activity span = queue.StartActivity("job", ActivityKind.Consumer);
            span.SetTag("job", job);
            TellSpan(span);
            log.LogInformation("Job {Job} begins", job);
            TellLog("information", "Shop.Jobs", 0, $"Job {job} begins", "Job {Job} begins", new { Job = job.ToString() });
            Spin(20);
            await Charge(job);
            if (job % 2 == 1)
            {
                try { throw new InvalidOperationException("no card"); }
                catch (InvalidOperationException thrown)
                {
                    audit.LogError(3, thrown, "Job {Job} failed \"badly\"", job);
                    TellLog("error", "Shop.Audit", 3, $"Job {job} failed \"badly\"", "Job {Job} failed \"badly\"", new { Job = job.ToString() },
                        "System.InvalidOperationException: no card");
                    span.SetStatus(ActivityStatusCode.Error, "no card");
                }
            }
        }

        /// The token of a method and the offset of its instruction that makes an array of a type.
        static void TellCode(string method, string type)
        {
            using PEReader file = new PEReader(File.OpenRead(typeof(Jobs).Assembly.Location));
            MetadataReader metadata = file.GetMetadataReader();
            MethodDefinitionHandle of = metadata.MethodDefinitions.First(handle => metadata.GetString(metadata.GetMethodDefinition(handle).Name) == method);
            TypeDefinitionHandle element = metadata.TypeDefinitions.First(handle => metadata.GetString(metadata.GetTypeDefinition(handle).Name) == type);
            byte[] il = file.GetMethodBody(metadata.GetMethodDefinition(of).RelativeVirtualAddress).GetILBytes();
            int at = Enumerable.Range(0, il.Length - 4).First(n => il[n] == 0x8D && BitConverter.ToInt32(il, n + 1) == MetadataTokens.GetToken(element));
            Tell(new { what = "newarr", method, type = "Shop." + type + "[]", token = MetadataTokens.GetToken(of), il_offset = at });
        }

        static async Task Main(string[] arguments)
        {
            using ILoggerFactory factory = LoggerFactory.Create(builder => builder.AddEventSourceLogger().SetMinimumLevel(LogLevel.Trace));
            log = factory.CreateLogger("Shop.Jobs");
            audit = factory.CreateLogger("Shop.Audit");
            for (int wait = 0; !queue.HasListeners() && wait < 100; wait++) await Task.Delay(20);
            await Task.Delay(100);
            await Task.WhenAll(Enumerable.Range(0, int.Parse(arguments[0])).Select(job => Task.Run(() => Job(job))));
            log.LogDebug("All is done");
            TellLog("debug", "Shop.Jobs", 0, "All is done", "All is done", new { });
            TellCode("Allocate", "Receipt");
            TellCode("Allocate", "Invoice");
            foreach (object what in told) Console.WriteLine(JsonSerializer.Serialize(what));
        }
    }
}
