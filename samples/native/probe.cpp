// Functions for tests of native symbols: in namespaces, classes and templates, static and inlined ones.
namespace probe {

struct Counter {
    int value;
    Counter(int start);
    ~Counter();
    int add(int amount);
    int operator+(int amount);
};

static volatile int sink;

__declspec(noinline) Counter::Counter(int start) {
    value = start;
    sink = start;
}

__declspec(noinline) Counter::~Counter() {
    sink = value;
}

__declspec(noinline) int Counter::add(int amount) {
    for (int i = 0; i < amount; i++)
        value += i * amount;
    return value;
}

__declspec(noinline) int Counter::operator+(int amount) {
    return add(amount) + 1;
}

template <typename T> __declspec(noinline) T twice(T value) {
    sink = 2;
    return value + value;
}

static __declspec(noinline) int hidden(int amount) {
    sink = amount;
    return amount * 3;
}

int run(int amount) {
    Counter counter(amount);
    int sum = counter.add(amount) + (counter + amount);
    sum += twice<int>(amount);
    sum += (int)twice<long long>(amount);
    return sum + hidden(sum);
}

}

extern "C" int without_lines(int);

extern "C" __declspec(dllexport) int probe_entry(int amount) {
    return probe::run(amount) + without_lines(amount);
}

extern "C" int _fltused = 0;
extern "C" int DllMainCRTStartup(void *, unsigned, void *) { return 1; }
