// Orders: the program of the worked example in docs/CI.md. It sums up made-up orders. With the switch `waste` it copies
// each line before it reads it, as a careless change would. It prints what it allocates, in bytes: all of it as the runtime counts it,
// and of each type.
using System;
using System.Text;

static class Program
{
    const int Lines = 400000;
    static long total;

    static int Main(string[] args)
    {
        bool waste = args.Length > 0 && args[0] == "waste";
        byte[] line = Encoding.ASCII.GetBytes("order;4711;book;12;990");
        long before = GC.GetAllocatedBytesForCurrentThread();
        for (int i = 0; i < Lines; i++) total += Sum(waste ? (byte[])line.Clone() : line, new StringBuilder(16));
        long all = GC.GetAllocatedBytesForCurrentThread() - before;
        long bytes = Size(() => line.Clone()), chars = Size(() => new char[16]), builder = Size(() => new StringBuilder(16)) - chars;
        Console.WriteLine("total " + all);
        Console.WriteLine("System.Byte[] " + (waste ? Lines * bytes : 0));
        Console.WriteLine("System.Char[] " + Lines * chars);
        Console.WriteLine("System.Text.StringBuilder " + Lines * builder);
        return total > 0 ? 0 : 1;
    }

    static long Sum(byte[] line, StringBuilder text)
    {
        long sum = 0;
        foreach (byte b in line) if (b >= '0' && b <= '9') sum = sum * 10 + (b - '0'); else sum = 0;
        text.Append(sum);
        return text.Length;
    }

    public static object kept;

    // What one allocation takes.
    static long Size(Func<object> make)
    {
        kept = make();
        long before = GC.GetAllocatedBytesForCurrentThread();
        for (int i = 0; i < 1000; i++) kept = make();
        return (GC.GetAllocatedBytesForCurrentThread() - before) / 1000;
    }
}
