/* The .corprof format for C (see schemas/corprof.md): enough to write a recording that tracequet reads. For little-endian
   processors, which are all that .NET runs on but s390x. */
#ifndef CORPROF_H
#define CORPROF_H
#include <stdint.h>
#include <string.h>
#if defined(_MSC_VER)
#include <intrin.h>
#define CORPROF_STORE32(at, value) _InterlockedExchange((volatile long *)(at), (long)(value))
#define CORPROF_STORE64(at, value) _InterlockedExchange64((volatile long long *)(at), (long long)(value))
#else
#define CORPROF_STORE32(at, value) __atomic_store_n((uint32_t *)(void *)(at), (value), __ATOMIC_RELEASE)
#define CORPROF_STORE64(at, value) __atomic_store_n((uint64_t *)(void *)(at), (value), __ATOMIC_RELEASE)
#endif

/* Kinds of records. */
enum { CORPROF_END = 1, CORPROF_CLOCK = 2, CORPROF_GC_STARTED = 3, CORPROF_GC_FINISHED = 4, CORPROF_SURVIVING = 5,
       CORPROF_SURVIVING2 = 6, CORPROF_MOVED = 7, CORPROF_MOVED2 = 8, CORPROF_ROOTS = 9, CORPROF_ROOTS2 = 10,
       CORPROF_OBJECT = 11, CORPROF_WEAK = 12, CORPROF_HANDLE_CREATED = 13, CORPROF_HANDLE_DESTROYED = 14,
       CORPROF_FINALIZEABLE = 15, CORPROF_BY_CLASS = 16, CORPROF_ALLOCATED = 17, CORPROF_SUSPEND_STARTED = 18,
       CORPROF_SUSPEND_FINISHED = 19, CORPROF_SUSPEND_ABORTED = 20, CORPROF_RESUME_STARTED = 21,
       CORPROF_RESUME_FINISHED = 22, CORPROF_THREAD_SUSPENDED = 23, CORPROF_THREAD_RESUMED = 24,
       CORPROF_THREAD_CREATED = 25, CORPROF_THREAD_DESTROYED = 26, CORPROF_THREAD_ASSIGNED = 27,
       CORPROF_THREAD_NAME = 28, CORPROF_CLASS = 29, CORPROF_FUNCTION = 30, CORPROF_MODULE = 31,
       CORPROF_CLASS_UNLOADED = 32, CORPROF_FUNCTION_UNLOADED = 33, CORPROF_MODULE_UNLOADED = 34, CORPROF_LOST = 35,
       CORPROF_ATTACHED = 36, CORPROF_NOTE = 37 };
/* Flags of records, for corprof_flags. */
enum { CORPROF_FLAG_FAILED = 1, CORPROF_FLAG_CONTINUES = 2, CORPROF_FLAG_CUT = 4 };
#define CORPROF_NOT_ASKED 0x8000FFFFu
enum { CORPROF_CHUNK_HEADER = 40, CORPROF_RECORD_HEADER = 32 };

typedef struct { uint8_t *p; } corprof_out; /* bytes go to p, which moves on; the caller provides the room */

static void corprof_int(corprof_out *o, uint64_t v, int bytes) {
    for (; bytes--; v >>= 8) *o->p++ = (uint8_t)v;
}
static void corprof_varint(corprof_out *o, uint64_t v) {
    for (; v >= 0x80; v >>= 7) *o->p++ = (uint8_t)(v | 0x80);
    *o->p++ = (uint8_t)v;
}
static void corprof_zigzag(corprof_out *o, int64_t v) { corprof_varint(o, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }
static void corprof_text(corprof_out *o, const char *utf8) {
    size_t n = strlen(utf8);
    corprof_varint(o, n); memcpy(o->p, utf8, n); o->p += n;
}
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
    corprof_int(o, 1 | 1 << 16, 4); corprof_int(o, 124, 4); corprof_int(o, 0, 4); corprof_int(o, 8, 4);
    corprof_int(o, (uint64_t)pointer_size, 8); corprof_int(o, pid, 8); corprof_int(o, 0, 8); corprof_int(o, frequency, 8);
    corprof_int(o, ticks, 8); corprof_int(o, (uint64_t)utc_ns, 8);
    memset(o->p, 0, 52); o->p += 52;
    corprof_set32(start + 80, mask_low); corprof_set32(start + 84, mask_high);
    corprof_set32(start + 16, corprof_crc(0, start, 124));
    memset(o->p, 0, 4); o->p += 4; /* to a multiple of 8 */
}
/* Begins a chunk of `capacity` bytes in all, at a multiple of 8 in memory and in the file: a multiple of 8 that its records
   fit into with 40 more. It is a part of the recording from here on, with no record yet. */
static uint8_t *corprof_chunk(corprof_out *o, uint32_t capacity, uint64_t thread_id, uint32_t thread, uint32_t number) {
    uint8_t *chunk = o->p;
    memset(chunk, 0, CORPROF_CHUNK_HEADER); memcpy(chunk, "CHNK", 4);
    corprof_set32(chunk + 4, capacity);
    o->p += 8; corprof_int(o, thread_id, 8); corprof_int(o, thread, 4); corprof_int(o, number, 4);
    corprof_set32(chunk + 32, corprof_crc(0, chunk, 24));
    corprof_set32(chunk, 0); /* the mark goes last, so that no reader sees half a header */
    CORPROF_STORE64(chunk + 24, (uint64_t)0xFFFFFFFF << 32);
    CORPROF_STORE32(chunk, 0x4B4E4843u);
    o->p = chunk + CORPROF_CHUNK_HEADER;
    return chunk;
}
/* Ends a chunk: the rest of it stays zero, and the next may begin behind it. */
static void corprof_chunk_end(corprof_out *o, uint8_t *chunk) {
    uint32_t capacity = (uint32_t)chunk[4] | (uint32_t)chunk[5] << 8 | (uint32_t)chunk[6] << 16 | (uint32_t)chunk[7] << 24;
    memset(o->p, 0, (size_t)(chunk + capacity - o->p));
    o->p = chunk + capacity;
}
/* Begins a record; its payload follows, then corprof_record_end. `sequence` is taken when the callback is entered. */
static uint8_t *corprof_record(corprof_out *o, int kind, uint64_t sequence, uint64_t ticks) {
    uint8_t *record = o->p;
    corprof_int(o, (uint64_t)kind, 8); corprof_int(o, sequence, 8); corprof_int(o, ticks, 8); corprof_int(o, 0, 8);
    return record;
}
/* Flags of the record: CORPROF_FLAG_ bits. */
static void corprof_flags(uint8_t *record, int flags) { record[1] = (uint8_t)flags; }
/* Ends a record, and commits it: from here on it survives the process when the chunk lies in a mapped file. */
static void corprof_record_end(corprof_out *o, uint8_t *chunk, uint8_t *record) {
    uint32_t bytes = (uint32_t)(o->p - chunk) - CORPROF_CHUNK_HEADER;
    size_t payload = (size_t)(o->p - record) - CORPROF_RECORD_HEADER;
    corprof_set32(record + 4, (uint32_t)payload);
    corprof_set32(record + 28, corprof_crc(corprof_crc(0, record, 28), record + CORPROF_RECORD_HEADER, payload));
    CORPROF_STORE64(chunk + 24, (uint64_t)~bytes << 32 | bytes);
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
/* Rows of numbers, column by column: roots, weak elements, classes. ObjectReferences: object and class as varints, then
   columns of width 1. */
static void corprof_columns(corprof_out *o, const uint64_t *rows, uint32_t n, uint32_t width) {
    corprof_varint(o, n);
    for (uint32_t c = 0; c < width; c++) {
        uint64_t last = 0;
        *o->p++ = 0;
        for (uint32_t i = 0; i < n; i++) { corprof_zigzag(o, (int64_t)(rows[i * width + c] - last)); last = rows[i * width + c]; }
    }
}
/* The end of GarbageCollectionStarted and GarbageCollectionFinished: n rows of generation, start, length, reserved
   (GetGenerationBounds), and m of start, length, reserved (GetNonGCHeapBounds; .NET 8 and later). */
static void corprof_bounds(corprof_out *o, const uint64_t *rows, uint32_t n, const uint64_t *non_gc, uint32_t m) {
    corprof_int(o, n ? 0 : CORPROF_NOT_ASKED, 4); corprof_columns(o, rows, n, 4);
    corprof_int(o, m ? 0 : CORPROF_NOT_ASKED, 4); corprof_columns(o, non_gc, m, 3);
}
#endif
