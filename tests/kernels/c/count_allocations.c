/* Preloaded: counts the blocks of 16 KB and more that are asked for. Needs glibc. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#define LARGE (16 * 1024)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long count;

long large_allocations(void) { return count; }

static void seen(size_t size) {
    if (size >= LARGE) count++;
}

void *malloc(size_t size) {
    seen(size);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    seen(n && size > (size_t)-1 / n ? LARGE : n * size);
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size) {
    seen(size);
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    seen(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **made, size_t alignment, size_t size) {
    void *found = memalign(alignment, size);
    if (!found) return ENOMEM;
    *made = found;
    return 0;
}
