fn main() {
    let path = std::env::args().nth(1).unwrap();
    let i = tracequet::inspect::inspect(std::path::Path::new(&path), &mut |_, _| {}).unwrap();
    println!("{:?} {} {}", i.process, i.events, i.payload_bytes);
    for c in &i.collections.list {
        println!("{c:?}");
    }
    println!("{:#?}", i.problems);
}
