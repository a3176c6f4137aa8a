// Noise: one program as several builds, to see how figures of the same build differ by chance, and which changes a gate finds.
// Arguments: what changes (none, more10, more30, survivors, pauses). A batch of work is the same in each run.
using System;
using System.Collections.Generic;

sealed class Node { public Node Left, Right; public long Value; }

static class Program
{
    const int Batches = 60, Objects = 6000;

    static Node Tree(int depth) { return depth == 0 ? null : new Node { Left = Tree(depth - 1), Right = Tree(depth - 1), Value = depth }; }

    static int Main(string[] args)
    {
        string change = args.Length > 0 ? args[0] : "none";
        int bytes = change == "more10" ? 132 : change == "more30" ? 156 : 120;
        // Some of what a batch allocates lives for five batches: 2 % of it, or 4 %.
        int every = change == "survivors" ? 25 : 50;
        // A graph that each full collection marks.
        Node root = Tree(change == "pauses" ? 18 : 15);
        Queue<List<byte[]>> kept = new Queue<List<byte[]>>();
        long total = 0;
        for (int batch = 0; batch < Batches; batch++)
        {
            List<byte[]> alive = new List<byte[]>();
            for (int i = 0; i < Objects; i++)
            {
                byte[] one = new byte[bytes - 24];
                total += one.Length;
                if (i % every == 0) alive.Add(one);
            }
            kept.Enqueue(alive);
            if (kept.Count > 5) kept.Dequeue();
            if (batch % 20 == 19) GC.Collect();
        }
        GC.KeepAlive(root);
        GC.KeepAlive(kept);
        return total > 0 ? 0 : 1;
    }
}
