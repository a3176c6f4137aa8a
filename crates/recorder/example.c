/* One collection with two surviving ranges: cc example.c && ./a.out > one.corprof && tracequet convert one.corprof -o one */
#include "corprof.h"
#include <stdio.h>

int main(void) {
    static uint64_t room[512]; /* aligned to 8 bytes */
    uint64_t starts[] = { 0x7f0000001000, 0x7f0000002000 }, lengths[] = { 0x100, 0x38 };
    uint64_t bounds[] = { 0, 0x7f0000000000, 0x8000, 0x10000 }; /* generation, start, length, reserved */
    corprof_out out = { (uint8_t *)room };
    corprof_header(&out, 8, 4711, 1000000000, 0, 1700000000000000000, 0x80 /* COR_PRF_MONITOR_GC */, 0);

    uint8_t *chunk = corprof_chunk(&out, 1024, 4712, 0, 0), *record;
    record = corprof_record(&out, CORPROF_GC_STARTED, 1, 1000);
    corprof_varint(&out, 5), corprof_varint(&out, 1 << 0 | 1 << 1), corprof_varint(&out, 0);
    corprof_bounds(&out, bounds, 1, NULL, 0);
    corprof_record_end(&out, chunk, record);

    record = corprof_record(&out, CORPROF_SURVIVING2, 2, 2000);
    corprof_ranges(&out, starts, lengths, 2);
    corprof_record_end(&out, chunk, record);

    record = corprof_record(&out, CORPROF_GC_FINISHED, 3, 3000);
    corprof_bounds(&out, bounds, 1, NULL, 0);
    corprof_record_end(&out, chunk, record);

    record = corprof_record(&out, CORPROF_END, 4, 4000);
    corprof_record_end(&out, chunk, record);
    corprof_chunk_end(&out, chunk);
    size_t bytes = (size_t)(out.p - (uint8_t *)room);
    return fwrite(room, 1, bytes, stdout) == bytes ? 0 : 1;
}
