fn main() {
    let args: Vec<String> = std::env::args().collect();
    let r = tracequet::pipeline::Convert { inputs: vec![args[1].clone().into()], output: args[2].clone().into(), overwrite: true, ..Default::default() };
    match tracequet::pipeline::convert(&r, &mut |_| {}) { Ok(s) => { let i=&s.inputs[0]; println!("events {} full {} partial {} raw {} gcs {} {} ms", i.events, i.decoded_full, i.decoded_partial, i.raw, i.collections, s.elapsed_ns/1000000); for p in &i.problems { println!("{} {:?} rows {} count {} {} @{}", p.code,p.severity,p.rows,p.count,p.message,p.offset);} for t in s.tables.iter().filter(|t| t.rows>0) { println!("{:60} {:8} {:9}", t.name,t.rows,t.bytes);} }, Err(e)=>{eprintln!("{e}"); std::process::exit(1)} }
}
