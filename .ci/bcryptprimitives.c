/* Rust's standard library takes its random numbers from ProcessPrng of bcryptprimitives.dll, which Wine 8 does not have:
 * without it no program of ours starts. This gives them as advapi32 does (RtlGenRandom). For tests on Wine only. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID buffer, ULONG length);

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) {
    while (length > 0) {
        ULONG piece = length < (1u << 30) ? (ULONG)length : 1u << 30;
        if (!SystemFunction036(data, piece)) return FALSE;
        data += piece;
        length -= piece;
    }
    return TRUE;
}
