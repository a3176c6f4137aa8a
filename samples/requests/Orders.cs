// A server that writes down what each of its requests did, while it is recorded: how long it waited for a lock and for a handle, slept, computed, which
// queries and calls it sent. The view request_time is held against that. For .NET 10 with ASP.NET Core.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Net.Http;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Logging;

namespace Shop
{
    /// What a request did.
    sealed class Done
    {
        public string Name = "";
        public double WaitMs, LockMs, CpuMs, QueryMs, CallMs, TotalMs;
        public int Waits, Locks, Queries, Calls, Collections;
        public long Bytes;
    }

    static class Orders
    {
        static readonly ConcurrentQueue<Done> all = new ConcurrentQueue<Done>();
        static readonly ActivitySource database = new ActivitySource("Shop.Database");
        static readonly object gate = new object();
        static readonly ManualResetEvent never = new ManualResetEvent(false);
        static HttpClient client;
        static string address;
        static object kept;

        static double Ms(long since) => Stopwatch.GetElapsedTime(since).TotalMilliseconds;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void WaitForHandle(Done done, int ms)
        {
            long since = Stopwatch.GetTimestamp();
            never.WaitOne(ms);
            done.WaitMs += Ms(since);
            done.Waits++;
        }

        /// Another thread has the lock for some time; the request asks for it meanwhile.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void WaitForLock(Done done, int ms)
        {
            using ManualResetEventSlim has = new ManualResetEventSlim(false, 0);
            Thread holder = new Thread(() =>
            {
                lock (gate)
                {
                    has.Set();
                    Thread.Sleep(ms);
                }
            });
            // Holding the lock is not work of the request.
            using (ExecutionContext.SuppressFlow()) holder.Start();
            while (!has.IsSet) Thread.SpinWait(100);
            long since = Stopwatch.GetTimestamp();
            lock (gate) { done.LockMs += Ms(since); }
            done.Locks++;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Compute(Done done, int ms)
        {
            long since = Stopwatch.GetTimestamp();
            int sum = 0;
            while (Ms(since) < ms) for (int n = 0; n < 1000; n++) sum = unchecked(sum * 31 + n);
            done.CpuMs += Ms(since);
            return sum;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static async Task Query(Done done, string text, int ms)
        {
            long since = Stopwatch.GetTimestamp();
            using (Activity query = database.StartActivity("query", ActivityKind.Client))
            {
                query?.SetTag("db.query.text", text);
                await Task.Delay(ms);
            }
            done.QueryMs += Ms(since);
            done.Queries++;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static async Task Call(Done done, string path)
        {
            long since = Stopwatch.GetTimestamp();
            await client.GetStringAsync(address + path);
            done.CallMs += Ms(since);
            done.Calls++;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Allocate(Done done, int count)
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            for (int n = 0; n < count; n++) kept = new byte[2000];
            done.Bytes += GC.GetAllocatedBytesForCurrentThread() - before;
        }

        static RequestDelegate Route(Func<HttpContext, Done, Task> work) => async context =>
        {
            long since = Stopwatch.GetTimestamp();
            Done done = new Done { Name = context.Request.Path };
            await work(context, done);
            await context.Response.WriteAsync("done");
            done.TotalMs = Ms(since);
            all.Enqueue(done);
        };

        static async Task Main(string[] arguments)
        {
            int rounds = int.Parse(arguments[0], CultureInfo.InvariantCulture);
            WebApplicationBuilder builder = WebApplication.CreateBuilder(new WebApplicationOptions());
            builder.Logging.ClearProviders();
            WebApplication app = builder.Build();
            app.Urls.Add("http://127.0.0.1:0");
            app.MapGet("/price", Route((context, done) => { Compute(done, 2); return Task.CompletedTask; }));
            app.MapGet("/cpu/{id}", Route((context, done) => { Compute(done, 60); return Task.CompletedTask; }));
            app.MapGet("/wait/{id}", Route((context, done) =>
            {
                WaitForHandle(done, 15);
                WaitForHandle(done, 10);
                return Task.CompletedTask;
            }));
            app.MapGet("/lock/{id}", Route((context, done) => { WaitForLock(done, 30); return Task.CompletedTask; }));
            app.MapGet("/query/{id}", Route(async (context, done) =>
            {
                await Query(done, "SELECT * FROM orders WHERE id = 7", 12);
                await Query(done, "SELECT * FROM lines WHERE order_id = 7", 8);
                WaitForHandle(done, 6);
            }));
            app.MapGet("/call/{id}", Route((context, done) => Call(done, "/price")));
            app.MapGet("/collect/{id}", Route((context, done) =>
            {
                GC.Collect();
                done.Collections++;
                return Task.CompletedTask;
            }));
            app.MapGet("/allocate/{id}", Route((context, done) => { Allocate(done, 3000); return Task.CompletedTask; }));
            // Nothing of it is recorded: neither a query nor a wait.
            app.MapGet("/sleep/{id}", Route((context, done) => Task.Delay(40)));
            await app.StartAsync();
            address = app.Urls.First();
            client = new HttpClient();
            string[] routes = { "cpu", "wait", "lock", "query", "call", "collect", "allocate", "sleep" };
            async Task Client(int number)
            {
                // Requests come from outside: they are no part of an activity of this program.
                for (int n = 0; n < rounds; n++)
                {
                    foreach (string route in routes.Skip(number).Concat(routes.Take(number)))
                    {
                        string path = $"/{route}/{number * 1000 + n}";
                        await client.GetStringAsync(address + path);
                    }
                }
            }
            await Client(0);
            await Task.WhenAll(Enumerable.Range(1, 3).Select(number => Task.Run(() => Client(number))));
            await app.StopAsync();
            Console.WriteLine("path,total_ms,wait_ms,waits,lock_ms,locks,cpu_ms,query_ms,queries,call_ms,calls,collections,bytes");
            foreach (Done d in all)
            {
                FormattableString line =
                    $"{d.Name},{d.TotalMs:f3},{d.WaitMs:f3},{d.Waits},{d.LockMs:f3},{d.Locks},{d.CpuMs:f3},{d.QueryMs:f3},{d.Queries},{d.CallMs:f3},{d.Calls},{d.Collections},{d.Bytes}";
                Console.WriteLine(FormattableString.Invariant(line));
            }
        }
    }
}
