// The server of subject_cost.py. A request is what a shop's is: an order of 120 lines is looked up, checked, priced and written
// as JSON; one in ten asks another service.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Logging;

const string Url = "http://127.0.0.1:5081";
var builder = WebApplication.CreateBuilder(args);
builder.Logging.SetMinimumLevel(LogLevel.Warning);
var app = builder.Build();
var products = Enumerable.Range(0, 5000).ToDictionary(i => "P" + i, i => new Product("P" + i, "Product number " + i, i * 1.17m, i % 7 == 0));
var http = new HttpClient();
var code = new Regex(@"^[A-Z]\d+$", RegexOptions.Compiled);
app.MapGet("/order/{id:int}", async (int id) =>
{
    var random = new Random(id);
    var lines = new List<Line>();
    for (var i = 0; i < 120; i++)
    {
        var key = "P" + random.Next(5000);
        if (!code.IsMatch(key)) throw new ArgumentException(key);
        var product = products[key];
        lines.Add(new Line(product, random.Next(1, 9), product.Price * (product.Reduced ? 0.9m : 1m)));
    }
    var groups = lines.GroupBy(line => line.Product.Name[..9])
        .Select(group => new { group.Key, Sum = group.Sum(line => line.Price * line.Count) })
        .OrderByDescending(group => group.Sum).Take(20).ToList();
    var json = JsonSerializer.Serialize(new { id, lines, groups });
    var read = JsonSerializer.Deserialize<JsonElement>(json);
    var hash = Convert.ToHexString(SHA256.HashData(Encoding.UTF8.GetBytes(json)));
    if (id % 10 == 0) await http.GetStringAsync($"{Url}/stock/{id}");
    return Results.Json(new { hash, total = read.GetProperty("groups").GetArrayLength(), lines = lines.Take(30) });
});
app.MapGet("/stock/{id:int}", (int id) => Results.Json(new { id, stock = id % 13 }));
app.Run(Url);

record Product(string Code, string Name, decimal Price, bool Reduced);
record Line(Product Product, int Count, decimal Price);
