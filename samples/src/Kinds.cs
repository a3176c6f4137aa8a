// Kinds: programs of which each makes the collector meet one thing, for tests that record one process twice and hold the
// recordings against each other. As in Churn.cs the amount of work is fixed, and the language is C# 7.
//
//   large [ROUNDS]       large objects: swept, compacted, with and without references
//   pinned [ROUNDS]      pinned objects among garbage, and those of the pinned heap (.NET 5)
//   finalizers [ROUNDS]  finalizers: queued, waiting behind a slow one, critical, resurrecting
//   handles [ROUNDS]     handles of every kind
//   weak [ROUNDS]        tables of weak keys: chains of them, cycles through values, dead keys
//   frozen [ROUNDS]      objects that are never collected (literals, types), as roots, keys, and values
//   threads [THREADS]    roots of deep stacks, into the middle of objects, and of threads
//   unload [ROUNDS]      types and methods that go, so that their ids come again
//   ranges [ROUNDS]      many ranges: a large heap full of holes, compacted and swept again and again
//   big [GIB]            an array of 5 GiB among others
//   keeps [ROUNDS [MS]]  objects of one type that two methods allocate, 3 to 1, each for an activity of its own; a third one's die
//   steps [STEPS [MS]]   `churn` with pauses, for a recorder that is attached later
using System;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.ConstrainedExecution;
using System.Runtime.InteropServices;
using System.Threading;

static class Kinds
{
    public const string Usage = "large | pinned | finalizers | handles | weak | frozen | threads | unload | ranges | big | keeps [N [MS]] | steps [N [MS]] | throws [N [MS]]";

    public static bool Run(string mode, int? n, int? pause)
    {
        switch (mode)
        {
            case "large": Large(n ?? 12); return true;
            case "pinned": Pinned(n ?? 12); return true;
            case "finalizers": Finalizers(n ?? 12); return true;
            case "handles": Handles(n ?? 12); return true;
            case "weak": Weak(n ?? 12); return true;
            case "frozen": Frozen(n ?? 12); return true;
            case "threads": DeepStacks.Run(n ?? 4); return true;
            case "unload": Unload(n ?? 8); return true;
            case "ranges": Ranges(n ?? 12); return true;
            case "big": Big(n ?? 5); return true;
            case "keeps": Keeps.Run(n ?? 60, pause ?? 20); return true;
            case "steps": Churn.Steps(n ?? 20, pause ?? 100); return true;
            case "throws": Throws(n ?? 100, pause ?? 10); return true;
            default: return false;
        }
    }

    // Exceptions that are caught; half way through, one of another type.
    static void Throws(int rounds, int pause)
    {
        for (int i = 0; i < rounds; i++)
        {
            try { if (i == rounds / 2) throw new TimeoutException("half way"); throw new InvalidOperationException("round " + i); }
            catch (SystemException) { }
            Thread.Sleep(pause);
        }
    }

    // A collection of another sort in each round.
    static void Collect(int round)
    {
        switch (round % 6)
        {
            case 0: GC.Collect(0); break;
            case 1: GC.Collect(1); break;
            case 2: GC.Collect(2, GCCollectionMode.Forced, true, false); break;
            case 3: Worker.Garbage(2 << 20); break;
            case 4: GC.Collect(2, GCCollectionMode.Forced, true, true); break;
            default:
                GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
                GC.Collect();
                break;
        }
    }

    // Nodes with holes between them: something for the collector to move.
    static void Fragments(List<Node> kept, int round)
    {
        for (int i = 0; i < 600; i++)
        {
            Node node = new Node { Data = new byte[16 + (i * 37 + round) % 200] };
            if (i % 5 == 0) kept.Add(node);
        }
        for (int i = kept.Count - 1; i >= 0; i -= 3) kept.RemoveAt(i);
    }

    static void Large(int rounds)
    {
        List<Array> kept = new List<Array>();
        List<Node> nodes = new List<Node>();
        for (int round = 0; round < rounds; round++)
        {
            Fragments(nodes, round);
            for (int i = 0; i < 12; i++) kept.Add(new byte[85000 + 997 * (i + round)]);
            object[] references = new object[12000];                        // a large object that keeps small ones alive
            for (int i = 0; i < references.Length; i += 40) references[i] = new Node { Text = "of a large one" };
            kept.Add(references);
            if (round == 3) kept.Add(new double[1 << 20]);                  // 8 MB
            for (int i = kept.Count - 1; i >= 0; i -= 2) kept.RemoveAt(i);
            Collect(round);
        }
        GC.KeepAlive(kept);
        GC.KeepAlive(nodes);
    }

    static void Pinned(int rounds)
    {
        // An array in the pinned heap: a method of .NET 5, found by name for the sake of older ones.
        MethodInfo allocate = typeof(GC).GetMethod("AllocateArray");
        Func<int, bool, byte[]> inPinnedHeap = allocate == null ? null
            : (Func<int, bool, byte[]>)allocate.MakeGenericMethod(typeof(byte)).CreateDelegate(typeof(Func<int, bool, byte[]>));
        List<Node> nodes = new List<Node>();
        List<byte[]> immovable = new List<byte[]>();
        Queue<GCHandle> pins = new Queue<GCHandle>();
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < 20; i++)
            {
                Fragments(nodes, round + i);
                pins.Enqueue(GCHandle.Alloc(new byte[48 + i], GCHandleType.Pinned));
                if (inPinnedHeap != null) immovable.Add(inPinnedHeap(100 + 16 * i, true));
            }
            if (inPinnedHeap != null && round % 4 == 1) immovable.Add(inPinnedHeap(200000, true));
            for (int i = immovable.Count - 1; i >= 0; i -= 3) immovable.RemoveAt(i);
            while (pins.Count > 150) pins.Dequeue().Free();
            Collect(round);
        }
        foreach (GCHandle pin in pins) pin.Free();
        GC.KeepAlive(nodes);
        GC.KeepAlive(immovable);
    }

    // ------------------------------------------------------------------------------------------------------------

    static readonly ManualResetEvent go = new ManualResetEvent(false);
    static readonly List<object> resurrected = new List<object>();

    sealed class Slow { ~Slow() { go.WaitOne(); } }
    sealed class Plain { public byte[] Data = new byte[40]; ~Plain() { Interlocked.Increment(ref Finalized.Count); } }
    sealed class Critical : CriticalFinalizerObject { ~Critical() { Interlocked.Increment(ref Finalized.Count); } }
    sealed class Returning { public Node Node = new Node(); ~Returning() { lock (resurrected) resurrected.Add(this); } }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Mourn(int round)
    {
        if (round % 4 == 0) new Slow();
        for (int i = 0; i < 20; i++) { new Plain(); new Critical(); if (i % 4 == 0) new Returning(); }
        GC.SuppressFinalize(new Plain());
    }

    static void Finalizers(int rounds)
    {
        List<Node> nodes = new List<Node>();
        for (int round = 0; round < rounds; round++)
        {
            Fragments(nodes, round);
            Mourn(round);
            Collect(round);
            // Three collections see the queue wait behind a slow finalizer, the fourth sees it empty.
            if (round % 4 == 3) { go.Set(); GC.WaitForPendingFinalizers(); go.Reset(); }
        }
        go.Set();
        GC.WaitForPendingFinalizers();
        GC.Collect();
        GC.KeepAlive(nodes);
    }

    // ------------------------------------------------------------------------------------------------------------

    static void Handles(int rounds)
    {
        GCHandleType[] kinds = { GCHandleType.Normal, GCHandleType.Weak, GCHandleType.WeakTrackResurrection, GCHandleType.Pinned };
        List<Node> nodes = new List<Node>();
        Queue<GCHandle> handles = new Queue<GCHandle>();
        List<object> alive = new List<object>();
        ConditionalWeakTable<object, object> dependent = new ConditionalWeakTable<object, object>();
        Action<object> countReferences = ReferenceCounting();
        for (int round = 0; round < rounds; round++)
        {
            Fragments(nodes, round);
            for (int i = 0; i < 40; i++)
            {
                object held = i % 4 == 3 ? (object)new byte[30 + i] : new Node { Text = "held" };
                handles.Enqueue(GCHandle.Alloc(held, kinds[i % 4]));
                if (i % 3 == 0) { alive.Add(held); dependent.Add(held, new Node { Text = "hangs on another" }); }
            }
            if (countReferences != null) countReferences(new Node { Text = "referenced from outside" });
            while (handles.Count > 200) handles.Dequeue().Free();
            if (alive.Count > 100) alive.RemoveRange(0, 50);
            Collect(round);
            if (round % 3 == 0) { GCHandle h = handles.Peek(); if (!h.IsAllocated) throw new InvalidOperationException(); h.Target = null; }
        }
        foreach (GCHandle handle in handles) handle.Free();
        GC.KeepAlive(nodes);
        GC.KeepAlive(alive);
        GC.KeepAlive(dependent);
    }

    // Gives an object a reference count for code that is not managed, which a handle of its own kind stands for. ComWrappers
    // is a class of .NET 5 whose abstract methods have nothing to do here: they are made while the program runs.
    static Action<object> ReferenceCounting()
    {
        Type wrappers = typeof(GCHandle).Assembly.GetType("System.Runtime.InteropServices.ComWrappers");
        if (wrappers == null) return null;
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Wrappers"), AssemblyBuilderAccess.Run);
        TypeBuilder type = assembly.DefineDynamicModule("Wrappers").DefineType("Wrappers", TypeAttributes.Public, wrappers);
        foreach (MethodInfo method in wrappers.GetMethods(BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic))
        {
            if (!method.IsAbstract) continue;
            ParameterInfo[] parameters = method.GetParameters();
            ILGenerator il = type.DefineMethod(method.Name, method.Attributes & ~MethodAttributes.Abstract & ~MethodAttributes.NewSlot,
                method.ReturnType, Array.ConvertAll(parameters, p => p.ParameterType)).GetILGenerator();
            for (int i = 0; i < parameters.Length; i++)
                if (parameters[i].IsOut) { il.Emit(OpCodes.Ldarg, (short)(i + 1)); il.Emit(OpCodes.Ldc_I4_0); il.Emit(OpCodes.Stind_I4); }
            if (method.ReturnType.IsPointer) { il.Emit(OpCodes.Ldc_I4_0); il.Emit(OpCodes.Conv_U); }
            else if (method.ReturnType != typeof(void)) il.Emit(OpCodes.Ldnull);
            il.Emit(OpCodes.Ret);
        }
        object instance = Activator.CreateInstance(type.CreateTypeInfo().AsType());
        MethodInfo make = wrappers.GetMethod("GetOrCreateComInterfaceForObject");
        object none = Enum.ToObject(make.GetParameters()[1].ParameterType, 0);
        return o => make.Invoke(instance, new object[] { o, none });
    }

    static void Weak(int rounds)
    {
        List<object> keys = new List<object>();
        ConditionalWeakTable<object, object> table = new ConditionalWeakTable<object, object>();
        for (int round = 0; round < rounds; round++)
        {
            Fragments(new List<Node>(), round);
            object last = null;
            for (int i = 0; i < 200; i++)
            {
                Node key = new Node { Data = new byte[24 + i % 50] };
                Node value = new Node { Text = "value" };
                if (i % 3 == 0) value.Next = key;                           // a cycle through the table keeps nothing alive
                table.Add(key, value);
                if (i % 4 == 0 && last != null) table.Add(value, last);     // a chain: the value is the key of another
                if (i % 2 == 0) keys.Add(key);
                last = key;
            }
            for (int i = keys.Count - 1; i >= 0; i -= 4) keys.RemoveAt(i);
            Collect(round);
        }
        GC.KeepAlive(keys);
        GC.KeepAlive(table);
    }

    static readonly object[] literals = { "a literal", "another literal", typeof(Node), typeof(Worker), string.Empty };

    static void Frozen(int rounds)
    {
        ConditionalWeakTable<object, object> table = new ConditionalWeakTable<object, object>();
        List<GCHandle> handles = new List<GCHandle>();
        List<Node> nodes = new List<Node>();
        foreach (object literal in literals)
        {
            table.Add(literal, new Node { Text = "hangs on a literal" });   // a key that is never collected
            handles.Add(GCHandle.Alloc(literal, GCHandleType.Normal));
            handles.Add(GCHandle.Alloc(literal, GCHandleType.Weak));
        }
        GCHandle pinned = GCHandle.Alloc("a pinned literal", GCHandleType.Pinned);
        for (int round = 0; round < rounds; round++)
        {
            string onStack = "a literal on the stack";
            Fragments(nodes, round);
            table.Add(new Node(), "a literal as value");
            nodes.Add(new Node { Text = "a literal in a field" });
            Collect(round);
            GC.KeepAlive(onStack);
        }
        foreach (GCHandle handle in handles) handle.Free();
        pinned.Free();
        GC.KeepAlive(nodes);
        GC.KeepAlive(table);
    }

    // ------------------------------------------------------------------------------------------------------------

    static void Ranges(int rounds)
    {
        Node[] kept = new Node[100000];
        for (int round = 0; round < rounds; round++)
        {
            // One node of four is replaced, here and there, so that what survives lies in pieces between the dead.
            for (int i = 0; i < kept.Length; i++)
            {
                uint dice = (uint)(i + round) * 2654435761u >> 16;
                if (round == 0 || dice % 4 == 0) kept[i] = new Node { Data = new byte[16 + dice % 400] };
            }
            GC.Collect(2, GCCollectionMode.Forced, true, round % 4 != 3);
        }
        GC.KeepAlive(kept);
    }

    static void Big(int gib)
    {
        long[] huge = new long[gib * (1L << 30) / sizeof(long)];            // hardly any of it is ever touched
        huge[huge.LongLength / 2] = 1;
        List<Array> others = new List<Array>();
        List<Node> nodes = new List<Node>();
        for (int round = 0; round < 6; round++)
        {
            Fragments(nodes, round);
            for (int i = 0; i < 10; i++) others.Add(new byte[90000 + i]);
            for (int i = others.Count - 1; i >= 0; i -= 2) others.RemoveAt(i);
            Collect(round);
        }
        GC.KeepAlive(huge);
        GC.KeepAlive(others);
        GC.KeepAlive(nodes);
    }

    static void Unload(int rounds)
    {
        List<Node> nodes = new List<Node>();
        for (int round = 0; round < rounds; round++)
        {
            Emit(round);
            Fragments(nodes, round);
            // What is unloaded is found dead by a full collection, and freed by the finalizers that follow.
            for (int i = 0; i < 3; i++) { GC.Collect(); GC.WaitForPendingFinalizers(); }
            Collect(round);
        }
        GC.KeepAlive(nodes);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Emit(int round)
    {
        // A collectible assembly with one class, of which the heap holds an object at a collection.
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Emitted" + round), AssemblyBuilderAccess.RunAndCollect);
        TypeBuilder type = assembly.DefineDynamicModule("Emitted" + round).DefineType("Emitted.Class" + round, TypeAttributes.Public);
        type.DefineField("Number", typeof(long), FieldAttributes.Public);
        object instance = Activator.CreateInstance(type.CreateTypeInfo().AsType());
        // A method without an assembly: on its stack is an object while it calls the collector.
        DynamicMethod method = new DynamicMethod("emitted" + round, typeof(object), new Type[] { typeof(object) }, typeof(Kinds).Module, true);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldc_I4_0);
        il.Emit(OpCodes.Call, typeof(GC).GetMethod("Collect", new Type[] { typeof(int) }));
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ret);
        ((Func<object, object>)method.CreateDelegate(typeof(Func<object, object>)))(instance);
    }
}

// Threads that wait at the bottom of deep recursions, with objects, and references into the middle of objects, on the way.
static class DeepStacks
{
    [ThreadStatic] static Node ownRoot;
    static Barrier barrier;
    static long sum;

    public static void Run(int threads)
    {
        barrier = new Barrier(threads + 1);
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++)
        {
            int depth = 20 + 15 * i;
            all[i] = new Thread(() => { ownRoot = new Node { Text = "of a thread" }; Down(depth, new int[100 + depth]); GC.KeepAlive(ownRoot); }) { Name = "deep-" + i };
            all[i].Start();
        }
        for (int round = 0; round < 6; round++)
        {
            barrier.SignalAndWait();                                        // all are at the bottom
            GC.Collect(round % 3);
            barrier.SignalAndWait();
            Worker.Garbage(1 << 19);                                        // and then all run
        }
        foreach (Thread thread in all) thread.Join();
        Console.WriteLine("sum: " + sum);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Down(int depth, int[] numbers)
    {
        Node here = new Node { Data = new byte[depth] };
        ref int middle = ref numbers[depth % numbers.Length];
        if (depth > 0) middle += Down(depth - 1, depth % 7 == 0 ? new int[50 + depth] : numbers);
        else
            for (int round = 0; round < 6; round++)
            {
                barrier.SignalAndWait();
                barrier.SignalAndWait();
                Node chain = null;
                for (int i = 0; i < 2000; i++) { Node node = new Node { Data = new byte[30] }; if (i % 10 == 0) { node.Next = chain; chain = node; } }
                here.Next = chain;
            }
        Interlocked.Add(ref sum, middle);
        return here.Data.Length;
    }
}

// Objects whose truth is known: who allocated those that stay, and what for.
static class Keeps
{
    struct Line { public long A, B, C, D, E, F, G, H; }
    struct Page { public Line A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P; }
    sealed class Kept { public Kept Next; public Page Data; }

    static readonly Guid often = new Guid("0f7e0000-0000-0000-0000-000000000001");
    static readonly Guid seldom = new Guid("5e1d0000-0000-0000-0000-000000000002");
    static readonly Guid dropped = new Guid("d0a00000-0000-0000-0000-000000000003");

    [MethodImpl(MethodImplOptions.NoInlining)] static Kept Often(Kept next) { return new Kept { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Kept Seldom(Kept next) { return new Kept { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Kept Dropped() { return new Kept(); }

    // A round keeps 600 KB and 200 KB; as much again is dropped. Every other round collects, compacting now and then.
    public static void Run(int rounds, int pause)
    {
        Kept kept = null, last = null;
        // Whoever records it writes a line when the recording has begun; without an input it begins at once.
        Console.In.ReadLine();
        for (int round = 0; round < rounds; round++)
        {
            EventSource.SetCurrentThreadActivityId(often);
            for (int i = 0; i < 600; i++) kept = Often(kept);
            EventSource.SetCurrentThreadActivityId(seldom);
            for (int i = 0; i < 200; i++) kept = Seldom(kept);
            EventSource.SetCurrentThreadActivityId(dropped);
            for (int i = 0; i < 800; i++) last = Dropped();
            EventSource.SetCurrentThreadActivityId(Guid.Empty);
            if (round % 2 == 0) GC.Collect(round % 3, GCCollectionMode.Forced, true, round % 4 == 0);
            Thread.Sleep(pause);
        }
        // Everything is kept until the heap was dumped.
        Console.WriteLine("kept");
        Thread.Sleep(60000);
        GC.KeepAlive(kept);
        GC.KeepAlive(last);
    }
}
