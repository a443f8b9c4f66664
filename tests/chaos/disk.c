/* A disk that fails on command: loaded into a service with LD_PRELOAD.

   The harness flips the flags in a file that is mapped here, and reads from it how many calls have
   failed. Only files below CHAOS_DISK_FOLDER are concerned. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile uint32_t full;          /* no byte is free: ENOSPC, and statvfs says so */
    volatile uint32_t sync_fails;    /* fsync answers EIO */
    volatile uint32_t sync_delay_ms; /* fsync takes so much longer */
    volatile uint32_t refused_writes;
    volatile uint32_t failed_syncs;
    volatile uint32_t slow_syncs;
};

static struct control nothing;
static struct control *control = &nothing;
static const char *folder;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CHAOS_DISK_CONTROL");
    folder = getenv("CHAOS_DISK_FOLDER");
    int fd = path && folder ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof nothing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        control = mapped;
    close(fd);
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > 0 && !strncmp(path, folder, strlen(folder));
}

static int refused(int fd) {
    if (!control->full || !is_ours(fd))
        return 0;
    __atomic_add_fetch(&control->refused_writes, 1, __ATOMIC_RELAXED);
    errno = ENOSPC;
    return 1;
}

static int sync_fails(int fd) {
    uint32_t delay_ms = control->sync_delay_ms;
    if ((!delay_ms && !control->sync_fails) || !is_ours(fd))
        return 0;
    if (delay_ms) {
        struct timespec pause = {delay_ms / 1000, (delay_ms % 1000) * 1000000L};
        nanosleep(&pause, NULL);
        __atomic_add_fetch(&control->slow_syncs, 1, __ATOMIC_RELAXED);
    }
    if (!control->sync_fails)
        return 0;
    __atomic_add_fetch(&control->failed_syncs, 1, __ATOMIC_RELAXED);
    errno = EIO;
    return 1;
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    return refused(fd) ? -1 : real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL(pwrite);
    return refused(fd) ? -1 : real(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    REAL(pwrite64);
    return refused(fd) ? -1 : real(fd, data, size, offset);
}

int fsync(int fd) {
    REAL(fsync);
    return sync_fails(fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return sync_fails(fd) ? -1 : real(fd);
}

int statvfs(const char *path, struct statvfs *answer) {
    REAL(statvfs);
    int result = real(path, answer);
    if (!result && control->full && !strncmp(path, folder, strlen(folder)))
        answer->f_bavail = answer->f_bfree = 0;
    return result;
}

int statvfs64(const char *path, struct statvfs64 *answer) {
    REAL(statvfs64);
    int result = real(path, answer);
    if (!result && control->full && !strncmp(path, folder, strlen(folder)))
        answer->f_bavail = answer->f_bfree = 0;
    return result;
}
