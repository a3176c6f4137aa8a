/* The .corprof format for C (see schemas/corprof.md): enough to write a recording that tracequet reads. */
#ifndef CORPROF_H
#define CORPROF_H
#include <stdint.h>
#include <string.h>

enum { CORPROF_END = 1, CORPROF_GC_STARTED = 3, CORPROF_GC_FINISHED = 4, CORPROF_SURVIVING = 5, CORPROF_SURVIVING2 = 6,
       CORPROF_MOVED = 7, CORPROF_MOVED2 = 8, CORPROF_NOT_ASKED = 0x8000FFFF };

typedef struct { uint8_t *p; } corprof_out; /* bytes go to p, which moves on; the caller provides the room */

static void corprof_int(corprof_out *o, uint64_t v, int bytes) {
    for (; bytes--; v >>= 8) *o->p++ = (uint8_t)v;
}
static void corprof_varint(corprof_out *o, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *o->p++ = (uint8_t)(v | 0x80);
    *o->p++ = (uint8_t)v;
}
static void corprof_zigzag(corprof_out *o, int64_t v) { corprof_varint(o, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }
static uint32_t corprof_crc(uint32_t crc, const uint8_t *b, size_t n) {
    crc = ~crc;
    for (; n--; b++) { crc ^= *b; for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0); }
    return ~crc;
}
static void corprof_set32(uint8_t *at, uint32_t v) { corprof_out o = { at }; corprof_int(&o, v, 4); }

/* The header; every text is empty. Chunks are aligned to 8 bytes. The masks are those that the runtime granted: whether
   background collections are possible depends on COR_PRF_MONITOR_GC, 0x80 in the low one. */
static void corprof_header(corprof_out *o, int pointer_size, uint64_t pid, uint64_t frequency, uint64_t ticks, int64_t utc_ns,
                           uint32_t mask_low, uint32_t mask_high) {
    uint8_t *start = o->p;
    memcpy(o->p, ".corprof", 8); o->p += 8;
    corprof_int(o, 1, 4); corprof_int(o, 124, 4); corprof_int(o, 0, 4); corprof_int(o, 8, 4);
    corprof_int(o, (uint64_t)pointer_size, 8); corprof_int(o, pid, 8); corprof_int(o, 0, 8); corprof_int(o, frequency, 8);
    corprof_int(o, ticks, 8); corprof_int(o, (uint64_t)utc_ns, 8);
    memset(o->p, 0, 52); o->p += 52;
    corprof_set32(start + 80, mask_low); corprof_set32(start + 84, mask_high);
    corprof_set32(start + 16, corprof_crc(0, start, 124));
    memset(o->p, 0, 4); o->p += 4; /* to a multiple of 8 */
}
/* Begins a chunk; corprof_chunk_end fills in its length when its records are there. */
static uint8_t *corprof_chunk(corprof_out *o, uint64_t thread_id, uint32_t thread, uint32_t number) {
    uint8_t *chunk = o->p;
    memset(chunk, 0, 40); memcpy(chunk, "CHNK", 4);
    o->p += 8; corprof_int(o, thread_id, 8); corprof_int(o, thread, 4); corprof_int(o, number, 4); o->p += 16;
    return chunk;
}
static void corprof_chunk_end(corprof_out *o, uint8_t *chunk) {
    uint32_t bytes = (uint32_t)(o->p - chunk) - 40;
    while ((o->p - chunk) % 8) *o->p++ = 0;
    corprof_set32(chunk + 4, (uint32_t)(o->p - chunk));
    corprof_set32(chunk + 32, corprof_crc(0, chunk, 24));
    corprof_set32(chunk + 24, bytes); corprof_set32(chunk + 28, ~bytes);
}
/* Begins a record; its payload follows, then corprof_record_end. */
static uint8_t *corprof_record(corprof_out *o, int kind, uint64_t sequence, uint64_t ticks) {
    uint8_t *record = o->p;
    corprof_int(o, (uint64_t)kind, 8); corprof_int(o, sequence, 8); corprof_int(o, ticks, 8); corprof_int(o, 0, 8);
    return record;
}
static void corprof_record_end(corprof_out *o, uint8_t *record) {
    corprof_set32(record + 4, (uint32_t)(o->p - record) - 32);
    corprof_set32(record + 28, corprof_crc(corprof_crc(0, record, 28), record + 32, (size_t)(o->p - record) - 32));
}
/* The payload of SurvivingReferences2 (or of SurvivingReferences, with its 32-bit lengths widened). */
static void corprof_ranges(corprof_out *o, const uint64_t *starts, const uint64_t *lengths, uint32_t n) {
    uint64_t end = 0;
    corprof_varint(o, n); *o->p++ = 0;
    for (uint32_t i = 0; i < n; i++) { corprof_zigzag(o, (int64_t)(starts[i] - end)); end = starts[i] + lengths[i]; }
    for (uint32_t i = 0; i < n; i++) corprof_varint(o, lengths[i]);
}
/* The payload of MovedReferences2 (or of MovedReferences). */
static void corprof_moved(corprof_out *o, const uint64_t *old, const uint64_t *now, const uint64_t *lengths, uint32_t n) {
    uint64_t end = n ? old[0] : 0;
    corprof_ranges(o, old, lengths, n);
    for (uint32_t i = 0; i < n; i++) { corprof_zigzag(o, (int64_t)(now[i] - end)); end = now[i] + lengths[i]; }
}
/* Rows of numbers, column by column. */
static void corprof_columns(corprof_out *o, const uint64_t *rows, uint32_t n, uint32_t width) {
    corprof_varint(o, n);
    for (uint32_t c = 0; c < width; c++) {
        uint64_t last = 0;
        *o->p++ = 0;
        for (uint32_t i = 0; i < n; i++) { corprof_zigzag(o, (int64_t)(rows[i * width + c] - last)); last = rows[i * width + c]; }
    }
}
/* What stands at the end of GarbageCollectionStarted and GarbageCollectionFinished: n rows of generation, start, length,
   reserved (GetGenerationBounds), and m of start, length, reserved (GetNonGCHeapBounds; .NET 8 and later). */
static void corprof_bounds(corprof_out *o, const uint64_t *rows, uint32_t n, const uint64_t *non_gc, uint32_t m) {
    corprof_int(o, n ? 0 : CORPROF_NOT_ASKED, 4); corprof_columns(o, rows, n, 4);
    corprof_int(o, m ? 0 : CORPROF_NOT_ASKED, 4); corprof_columns(o, non_gc, m, 3);
}
#endif
