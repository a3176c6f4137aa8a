namespace plain {
struct Box { int side; Box(int); int area(); };
__declspec(noinline) Box::Box(int s) { side = s; }
__declspec(noinline) int Box::area() { return side * side; }
__declspec(noinline) int helper(int a) { return a * 7; }
}
extern "C" int without_lines(int a) { plain::Box b(a); return b.area() + plain::helper(a); }
