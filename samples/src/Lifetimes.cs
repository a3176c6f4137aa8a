// Lifetimes: a program that lets its objects die at collections that it asks for, and writes down which type died when, and in which
// generation. Each type is one cohort, allocated by one method. C# 7, as in Churn.cs.
//
// No collection may come by itself: the first generation is large (DOTNET_GCgen0size), and what is large stays below its budget. The
// program fails when one does.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;

#pragma warning disable 0169, 0649 // what objects hold is of no interest

static class Lifetimes
{
    struct Line { public long A, B, C, D, E, F, G, H; }
    struct Page { public Line A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P; }
    class Linked { public Linked Next; public Page Data; }
    sealed class Dies0 : Linked { }
    sealed class Dies1 : Linked { }
    sealed class Dies2 : Linked { }
    sealed class DiesInBackground : Linked { }
    sealed class BornInBackground : Linked { }
    sealed class Stays : Linked { }
    sealed class Untested : Linked { }
    struct LargeDiesItem { public long Value; }
    struct LargeStaysItem { public long Value; }

    // What is known of a cohort while it lives: what holds it, how often it was collected, and where it is.
    sealed class Cohort
    {
        public string Type;
        public object Held;
        public WeakReference Weak;
        public long Bytes;
        public int Survived, First, Generation;
        public bool Released;
    }

    static readonly List<string> lines = new List<string>();
    static readonly List<Cohort> cohorts = new List<Cohort>();
    const int Size = 16 * 64 + 24;

    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeDies0(Linked next) { return new Dies0(); }
    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeDies1(Linked next) { return new Dies1 { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeDies2(Linked next) { return new Dies2 { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeDiesInBackground(Linked next) { return new DiesInBackground { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeBornInBackground(Linked next) { return new BornInBackground { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeStays(Linked next) { return new Stays { Next = next }; }
    [MethodImpl(MethodImplOptions.NoInlining)] static Linked MakeUntested(Linked next) { return new Untested { Next = next }; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Cohort Small(string type, int kilobytes, Func<Linked, Linked> make)
    {
        int before = GC.CollectionCount(0);
        Cohort cohort = new Cohort { Type = "Lifetimes+" + type };
        Linked last = null;
        for (int n = 0; n < kilobytes; n++) last = make(last);
        cohort.Held = last;
        cohort.Bytes = (long)kilobytes * Size;
        return Add(cohort, before);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Cohort Large<T>(string type, int count)
    {
        int before = GC.CollectionCount(0);
        T[][] all = new T[count][];
        for (int n = 0; n < count; n++) all[n] = new T[16000];
        Cohort cohort = new Cohort { Type = "Lifetimes+" + type + "[]", Held = all, Bytes = count * (16000L * 8 + 24), Generation = 3 };
        return Add(cohort, before);
    }

    static Cohort Add(Cohort cohort, int before)
    {
        if (GC.CollectionCount(0) != before) throw new InvalidOperationException("a collection came by itself while " + cohort.Type + " was allocated");
        cohorts.Add(cohort);
        return cohort;
    }

    static void Release(Cohort cohort) { cohort.Weak = new WeakReference(cohort.Held); cohort.Held = null; cohort.Released = true; }

    // Something that no collection of generation 0 leaves alive.
    [MethodImpl(MethodImplOptions.NoInlining)] static WeakReference Probe() { return new WeakReference(new object()); }

    // Asks for a collection, and notes what it means for each cohort. The runtime may collect more than was asked for.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Collect(int asked, bool background)
    {
        int before = GC.CollectionCount(0), first = GC.CollectionCount(1), second = GC.CollectionCount(2);
        WeakReference probe = Probe();
        if (background)
        {
            GC.Collect(2, GCCollectionMode.Forced, false);
            Thread.Sleep(400);
        }
        else GC.Collect(asked, GCCollectionMode.Forced, true, asked == 2);
        int number = GC.CollectionCount(0);
        if (number != before + 1) throw new InvalidOperationException((number - before) + " collections came at once");
        int generation = GC.CollectionCount(2) > second ? 2 : GC.CollectionCount(1) > first ? 1 : 0;
        // One in the background leaves what is young alone.
        bool ran = generation == 2 && probe.IsAlive;
        Predicate<Cohort> collected = cohort => ran ? cohort.Generation >= 2 : Math.Min(cohort.Generation, 2) <= generation;
        foreach (Cohort cohort in cohorts)
        {
            if (!collected(cohort))
            {
                if (cohort.Released && !cohort.Weak.IsAlive) throw new InvalidOperationException(cohort.Type + " died where its generation was not collected");
                continue;
            }
            if (cohort.First == 0) cohort.First = number;
            if (cohort.Released)
            {
                if (cohort.Weak.IsAlive) throw new InvalidOperationException(cohort.Type + " does not die");
                Tell(cohort, "dead", number, number);
                continue;
            }
            cohort.Survived++;
            if (cohort.Generation < 2) cohort.Generation = GC.GetGeneration(cohort.Held);
        }
        cohorts.RemoveAll(cohort => cohort.Released && collected(cohort));
    }

    static void Tell(Cohort cohort, string fate, int first, int last)
    {
        lines.Add("life " + cohort.Type + " " + fate + " " + first + " " + last + " " + cohort.Generation + " " + cohort.Survived + " " + cohort.First + " " + cohort.Bytes);
    }

    // Writes what became of the cohorts to a file, or to standard output.
    public static void Run(string file)
    {
        Thread.Sleep(150);
        // What the runtime and this program allocate before is out of the way.
        Collect(2, false);
        Cohort stays = Small("Stays", 12000, MakeStays);
        Large<LargeStaysItem>("LargeStaysItem", 8);
        Cohort largeDies = Large<LargeDiesItem>("LargeDiesItem", 8);
        Cohort background = Small("DiesInBackground", 12000, MakeDiesInBackground);
        Cohort dies2 = Small("Dies2", 12000, MakeDies2);
        Collect(0, false);
        Collect(1, false);
        // The cohorts above are in generation 2 now.
        Cohort dies1 = Small("Dies1", 12000, MakeDies1);
        Cohort dies0 = Small("Dies0", 12000, MakeDies0);
        Release(dies0);
        Collect(0, false);
        Release(dies1);
        Collect(1, false);
        Release(dies2);
        Release(largeDies);
        Collect(2, false);
        Release(background);
        BackgroundWithBirths();
        Collect(0, false);
        Collect(1, false);
        Collect(2, false);
        Untest();
        foreach (Cohort cohort in cohorts) Tell(cohort, cohort.Survived > 0 ? "alive" : "unknown", 0, 0);
        Thread.Sleep(150);
        if (file != null) File.WriteAllLines(file, lines);
        else foreach (string line in lines) Console.WriteLine(line);
        GC.KeepAlive(stays);
    }

    // Objects that come into being while a collection in the background may run: it does not collect them.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void BackgroundWithBirths()
    {
        Cohort[] born = new Cohort[2];
        Thread thread = new Thread(() =>
        {
            // Begins when the collection does.
            int before = GC.CollectionCount(0);
            SpinWait.SpinUntil(() => GC.CollectionCount(0) != before, 300);
            born[0] = Quietly("BornInBackground", MakeBornInBackground);
        });
        thread.Start();
        Thread.Sleep(20);
        Collect(2, true);
        thread.Join();
        cohorts.Add(born[0]);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static Cohort Quietly(string type, Func<Linked, Linked> make)
    {
        Linked last = null;
        for (int n = 0; n < 6000; n++) last = make(last);
        return new Cohort { Type = "Lifetimes+" + type, Held = last, Bytes = 6000L * Size };
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Untest() { Small("Untested", 6000, MakeUntested); }
}
