// Two benchmarks as BenchmarkDotNet's engine runs them, with the events that its engine writes (BenchmarkDotNet.EngineEventSource, as its
// source has them), and a line of JSON for each iteration: what it was, how long it took, what it allocated, how often the GC ran.
#nullable enable
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Text.Json;

[EventSource(Name = "BenchmarkDotNet.EngineEventSource")]
sealed class Engine : EventSource
{
    public static readonly Engine Log = new();
    const EventLevel Level = EventLevel.Informational;

    [Event(1, Level = Level, Task = (EventTask)1, Opcode = EventOpcode.Start)]
    public void BenchmarkStart(string benchmarkName) => WriteEvent(1, benchmarkName);
    [Event(2, Level = Level, Task = (EventTask)1, Opcode = EventOpcode.Stop)]
    public void BenchmarkStop(string benchmarkName) => WriteEvent(2, benchmarkName);
    [Event(3, Level = Level, Task = (EventTask)2, Opcode = EventOpcode.Start)]
    public void OverheadJittingStart(long totalOperations) => WriteEvent(3, totalOperations);
    [Event(4, Level = Level, Task = (EventTask)2, Opcode = EventOpcode.Stop)]
    public void OverheadJittingStop(long totalOperations) => WriteEvent(4, totalOperations);
    [Event(5, Level = Level, Task = (EventTask)3, Opcode = EventOpcode.Start)]
    public void WorkloadJittingStart(long totalOperations) => WriteEvent(5, totalOperations);
    [Event(6, Level = Level, Task = (EventTask)3, Opcode = EventOpcode.Stop)]
    public void WorkloadJittingStop(long totalOperations) => WriteEvent(6, totalOperations);
    [Event(7, Level = Level, Task = (EventTask)4, Opcode = EventOpcode.Start)]
    public void WorkloadPilotStart(long totalOperations) => WriteEvent(7, totalOperations);
    [Event(8, Level = Level, Task = (EventTask)4, Opcode = EventOpcode.Stop)]
    public void WorkloadPilotStop(long totalOperations) => WriteEvent(8, totalOperations);
    [Event(9, Level = Level, Task = (EventTask)5, Opcode = EventOpcode.Start)]
    public void OverheadWarmupStart(long totalOperations) => WriteEvent(9, totalOperations);
    [Event(10, Level = Level, Task = (EventTask)5, Opcode = EventOpcode.Stop)]
    public void OverheadWarmupStop(long totalOperations) => WriteEvent(10, totalOperations);
    [Event(11, Level = Level, Task = (EventTask)6, Opcode = EventOpcode.Start)]
    public void OverheadActualStart(long totalOperations) => WriteEvent(11, totalOperations);
    [Event(12, Level = Level, Task = (EventTask)6, Opcode = EventOpcode.Stop)]
    public void OverheadActualStop(long totalOperations) => WriteEvent(12, totalOperations);
    [Event(13, Level = Level, Task = (EventTask)7, Opcode = EventOpcode.Start)]
    public void WorkloadWarmupStart(long totalOperations) => WriteEvent(13, totalOperations);
    [Event(14, Level = Level, Task = (EventTask)7, Opcode = EventOpcode.Stop)]
    public void WorkloadWarmupStop(long totalOperations) => WriteEvent(14, totalOperations);
    [Event(15, Level = Level, Task = (EventTask)8, Opcode = EventOpcode.Start)]
    public void WorkloadActualStart(long totalOperations) => WriteEvent(15, totalOperations);
    [Event(16, Level = Level, Task = (EventTask)8, Opcode = EventOpcode.Stop)]
    public void WorkloadActualStop(long totalOperations) => WriteEvent(16, totalOperations);
}

static class Program
{
    static string benchmark = "";
    static object? kept;
    static double sum;

    static void Iterate(string kind, string stage, long operations, Action<long> start, Action<long> stop, Action<long> work)
    {
        var bytes = GC.GetTotalAllocatedBytes(true);
        var collections = new[] { GC.CollectionCount(0), GC.CollectionCount(1), GC.CollectionCount(2) };
        var clock = Stopwatch.StartNew();
        start(operations);
        work(operations);
        stop(operations);
        var elapsed = clock.Elapsed;
        for (var generation = 0; generation < 3; generation++)
            collections[generation] = GC.CollectionCount(generation) - collections[generation];
        bytes = GC.GetTotalAllocatedBytes(true) - bytes;
        Console.WriteLine(JsonSerializer.Serialize(new
        {
            benchmark, kind, stage, operations, ns = (long)(elapsed.TotalMilliseconds * 1e6), bytes,
            gen0 = collections[0] - collections[1], gen1 = collections[1] - collections[2], gen2 = collections[2],
        }));
    }

    static void Nothing(long operations)
    {
        for (long n = 0; n < operations; n++) Idle();
    }

    static void Idle() { }

    static void Run(string name, long operations, Action<long> work)
    {
        benchmark = name;
        Engine.Log.BenchmarkStart(name);
        Iterate("overhead", "jitting", 1, Engine.Log.OverheadJittingStart, Engine.Log.OverheadJittingStop, Nothing);
        Iterate("workload", "jitting", 1, Engine.Log.WorkloadJittingStart, Engine.Log.WorkloadJittingStop, work);
        for (var few = operations / 8; few < operations; few *= 2)
            Iterate("workload", "pilot", few, Engine.Log.WorkloadPilotStart, Engine.Log.WorkloadPilotStop, work);
        Iterate("overhead", "warmup", operations, Engine.Log.OverheadWarmupStart, Engine.Log.OverheadWarmupStop, Nothing);
        for (var n = 0; n < 3; n++)
            Iterate("overhead", "actual", operations, Engine.Log.OverheadActualStart, Engine.Log.OverheadActualStop, Nothing);
        for (var n = 0; n < 2; n++)
            Iterate("workload", "warmup", operations, Engine.Log.WorkloadWarmupStart, Engine.Log.WorkloadWarmupStop, work);
        for (var n = 0; n < 5; n++)
            Iterate("workload", "actual", operations, Engine.Log.WorkloadActualStart, Engine.Log.WorkloadActualStop, work);
        Engine.Log.BenchmarkStop(name);
    }

    static void Join(long operations)
    {
        for (long n = 0; n < operations; n++) kept = Shop.Totals.Line(1000);
    }

    static void Add(long operations)
    {
        for (long n = 0; n < operations; n++) sum += Shop.Totals.Sum(2000);
    }

    static void Main()
    {
        Run("Shop.Totals.Line(Length: 1000, Separator: \"; \")", 8000, Join);
        Run("Shop.Totals.Sum(Count: 2000)", 16000, Add);
    }
}

namespace Shop
{
    static class Totals
    {
        [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
        public static string Line(int length) => new('x', length);

        [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
        public static double Sum(int count)
        {
            var sum = 0.0;
            for (var n = 1; n <= count; n++) sum += Math.Sqrt(n);
            return sum;
        }
    }
}
