// Old objects that hold young ones: an Archive and its array are of generation 2 when 5,000 Drafts are put into them; 100 Drafts are held by a
// young list. The analysis for generations of .NET 5 and later records the heap at the end of a collection of generation 1, and the program says what
// it has put where. With an argument the Drafts go into the young list instead.
using System;
using System.Collections.Generic;

namespace Shop
{
    sealed class Draft { public long A, B; }

    sealed class Archive { public Draft[] Drafts = new Draft[5_000]; }

    static class Program
    {
        static Archive archive;
        static List<Draft> young;
        static object kept;

        static void Main(string[] arguments)
        {
            archive = new Archive();
            for (int turn = 0; turn < 3; turn++) GC.Collect(2);
            int[] generations = { GC.GetGeneration(archive), GC.GetGeneration(archive.Drafts) };
            young = new List<Draft>(100);
            for (int n = 0; n < 5_000; n++)
            {
                if (arguments.Length == 0) archive.Drafts[n] = new Draft(); else young.Add(new Draft());
            }
            for (int n = 0; n < 100; n++) young.Add(new Draft());
            Console.WriteLine($"held {(arguments.Length == 0 ? 5000 : 0)} by Shop.Draft[] of generation {generations[1]}, archive of generation {generations[0]}");
            // What survives a collection of generation 1 here is more than what DOTNET_GCGenAnalysisBytes asks for.
            GC.Collect(1, GCCollectionMode.Forced, true);
            Console.WriteLine($"number {GC.CollectionCount(0)} drafts of generation {GC.GetGeneration(archive.Drafts[0] ?? young[0])}");
            for (int n = 0; n < 200; n++) kept = new byte[1000];
        }
    }
}
