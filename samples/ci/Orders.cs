// Orders: the program of the worked example in docs/CI.md. It sums up made-up orders. With the switch `waste` it copies
// each line before it reads it, as a careless change would.
using System;
using System.Text;

static class Program
{
    static long total;

    static int Main(string[] args)
    {
        bool waste = args.Length > 0 && args[0] == "waste";
        byte[] line = Encoding.ASCII.GetBytes("order;4711;book;12;990");
        for (int i = 0; i < 400000; i++) total += Sum(waste ? (byte[])line.Clone() : line, new StringBuilder(16));
        Console.WriteLine(total);
        return 0;
    }

    static long Sum(byte[] line, StringBuilder text)
    {
        long sum = 0;
        foreach (byte b in line) if (b >= '0' && b <= '9') sum = sum * 10 + (b - '0'); else sum = 0;
        text.Append(sum);
        return text.Length;
    }
}
