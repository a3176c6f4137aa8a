// Known: a program that writes down what it allocates and what becomes of its exceptions, one line each, while it is recorded.
// Sampled allocations, exceptions and waits can be held against it. C# 7, as in Churn.cs; System.Threading.Lock, which .NET Core
// 3.1 does not have, is used by reflection, and left out there.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Threading;

static class Known
{
    static readonly List<string> lines = new List<string>();
    static object kept;

    static void Tell(string text) { lines.Add(text); }

    public static void Run()
    {
        Thread.Sleep(150);
        Allocations();
        Exceptions();
        Locks();
        Thread.Sleep(150);
        foreach (string line in lines) Console.WriteLine(line);
    }

    // ---- allocations: the bytes of each type are those that the runtime counts for this thread

    sealed class Small { public long Value = 1; }
    sealed class Pair { public object A = null, B = null; public long C = 1, D = 2; }

    static void Allocate(string type, int count, Func<object> make)
    {
        kept = make();
        long before = GC.GetAllocatedBytesForCurrentThread();
        for (int i = 0; i < count; i++) kept = make();
        long bytes = GC.GetAllocatedBytesForCurrentThread() - before;
        kept = null;
        Tell("allocation " + type + " " + count + " " + bytes.ToString(CultureInfo.InvariantCulture));
    }

    static void Allocations()
    {
        Allocate("Small", 600000, () => new Small());
        Allocate("Pair", 250000, () => new Pair());
        Allocate("System.Byte[]", 10000, () => new byte[1000]);
        Allocate("System.Int32[]", 200, () => new int[20000]);
        Allocate("System.Int64[]", 50, () => new long[30000]);
    }

    // ---- exceptions: TYPE|MESSAGE|how many handlers caught it|the last one

    static void Thrown(Exception e, int catches, string handler)
    {
        Tell("exception " + e.GetType().FullName + "|" + e.Message + "|" + catches + "|" + handler);
    }

    static readonly Exception inFilter = new ArithmeticException("in a filter");
    static readonly Exception deep = new ArrayTypeMismatchException("deep in a filter");

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Fails() { throw inFilter; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool FailsDeep() { try { throw deep; } finally { lines.Capacity++; } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Recovers() { try { throw new BadImageFormatException("caught in a filter"); } catch (BadImageFormatException e) { Thrown(e, 1, "Recovers"); } return true; }

    static void Exceptions()
    {
        // The filter throws: that is as if it had said no, and the outer handler catches.
        try
        {
            try { throw new TimeoutException("filter throws"); } catch (TimeoutException) when (Fails()) { }
        }
        catch (TimeoutException e) { Thrown(e, 1, "Exceptions"); }
        Thrown(inFilter, 0, "");
        // Two filters throw, then one says yes.
        try
        {
            try
            {
                try { throw new TimeoutException("two filters throw"); } catch (TimeoutException) when (FailsDeep()) { }
            }
            catch (TimeoutException) when (Fails()) { }
        }
        catch (TimeoutException e) when (Recovers()) { Thrown(e, 1, "Exceptions"); }
        Thrown(deep, 0, "");
        Thrown(inFilter, 0, "");
        // A filter within a filter.
        try { throw new TimeoutException("filter in a filter"); } catch (TimeoutException e) when (Inner()) { Thrown(e, 1, "Exceptions"); }
        Helpers();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static bool Inner()
    {
        try { throw new DivideByZeroException("in the filter's try"); } catch (DivideByZeroException) when (Fails()) { }
        catch (DivideByZeroException e) { Thrown(e, 1, "Inner"); }
        Thrown(inFilter, 0, "");
        return true;
    }

    // ---- thrown by the runtime's helpers for this method: site TYPE|METHOD

    static void Helpers()
    {
        Try(Cast); Try(Index); Try(Again); Try(Item);
    }

    static void Try(Action action)
    {
        try { action(); }
        catch (Exception e)
        {
            Thrown(e, 1, "Try");
            Tell("site " + e.GetType().FullName + "|" + action.Method.Name);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Cast() { kept = "text"; kept = (Pair)kept; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Index() { int[] few = new int[lines.Count > 0 ? 1 : 9]; few[lines.Count] = 1; }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Again() { ExceptionDispatchInfo.Capture(new NotSupportedException("again")).Throw(); }
    [MethodImpl(MethodImplOptions.NoInlining)] static void Item() { kept = new Dictionary<string, string>()["missing"]; }

    // ---- a lock that is held for 20 ms while another thread wants it: wait METHOD COUNT

    static void Locks()
    {
        Type type = Type.GetType("System.Threading.Lock");
        if (type == null) return;
        object gate = Activator.CreateInstance(type);
        Action enter = (Action)Delegate.CreateDelegate(typeof(Action), gate, type.GetMethod("Enter"));
        Action exit = (Action)Delegate.CreateDelegate(typeof(Action), gate, type.GetMethod("Exit"));
        for (int i = 0; i < 3; i++)
        {
            enter();
            Thread waiter = new Thread(() => Wait(enter, exit));
            waiter.Start();
            Thread.Sleep(20);
            exit();
            waiter.Join();
        }
        Tell("wait Wait 3");
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void Wait(Action enter, Action exit) { enter(); exit(); }
}
