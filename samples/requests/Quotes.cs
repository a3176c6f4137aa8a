// A server whose route /quote waits for a task with .Result, beside routes that do not. Its requests come from another process, which is
// this program with an address as its argument. For .NET 10 with ASP.NET Core; arguments: seconds.
using System;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.Logging;

namespace Shop
{
    sealed class Rates
    {
        public async Task<decimal> Get(string currency)
        {
            await Task.Delay(60);
            return currency.Length * 1.1m;
        }
    }

    sealed class Quotes
    {
        readonly Rates rates = new Rates();

        public decimal Quote(int number)
        {
            decimal rate = rates.Get("EUR" + number).Result;
            return rate * number;
        }
    }

    static class Catalog
    {
        static readonly string[] names = Enumerable.Range(0, 400).Select(n => "Article " + n).ToArray();

        public static string Search(int number) => string.Join(", ", names.Where(name => name.EndsWith((number % 10).ToString(CultureInfo.InvariantCulture))));
    }

    static class Program
    {
        static async Task Main(string[] arguments)
        {
            if (arguments[0].StartsWith("http"))
            {
                await Load(arguments[0], double.Parse(arguments[1], CultureInfo.InvariantCulture));
                return;
            }
            WebApplicationBuilder builder = WebApplication.CreateBuilder(new WebApplicationOptions());
            builder.Logging.ClearProviders();
            WebApplication app = builder.Build();
            app.Urls.Add("http://127.0.0.1:0");
            Quotes quotes = new Quotes();
            app.MapGet("/quote/{number}", (int number) => quotes.Quote(number));
            app.MapGet("/catalog/{number}", (int number) => Catalog.Search(number));
            app.MapGet("/mail/{number}", async (int number) => { await Task.Delay(2); return number; });
            await app.StartAsync();
            ProcessStartInfo load = new ProcessStartInfo(Environment.ProcessPath!, [typeof(Program).Assembly.Location, app.Urls.First(), arguments[0]]);
            using (Process process = Process.Start(load)!) process.WaitForExit();
            await app.StopAsync();
        }

        /// Sends requests at a steady pace, whether they are answered or not.
        static async Task Load(string address, double seconds)
        {
            using HttpClient client = new HttpClient { Timeout = TimeSpan.FromSeconds(30) };
            (string Route, int PerSecond)[] routes = [("quote", 40), ("catalog", 30), ("mail", 10)];
            int[] sent = new int[routes.Length];
            Task[] all = [];
            Stopwatch clock = Stopwatch.StartNew();
            while (clock.Elapsed.TotalSeconds < seconds)
            {
                for (int i = 0; i < routes.Length; i++)
                    for (int due = (int)(clock.Elapsed.TotalSeconds * routes[i].PerSecond); sent[i] < due; sent[i]++)
                        all = [.. all, client.GetStringAsync($"{address}/{routes[i].Route}/{sent[i]}")];
                Thread.Sleep(5);
            }
            // What is not answered by then stays without an end.
            await Task.WhenAny(Task.WhenAll(all), Task.Delay(3000));
        }
    }
}
