/*
 * Preloaded into user-mode Linux (see tests/uml.sh), so that kernels older than the processor run on it.
 *
 * The host takes a process's registers only whole: PTRACE_SETREGSET fails with EFAULT if the buffer is smaller than
 * the processor's whole state. The buffer of older kernels is as large as AVX-512 needs, and a processor with AMX has
 * 8 KiB more. So the registers that they do not know are set to what they are.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Larger than any processor's. */
static char state[1 << 16];
static size_t whole;

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	va_start(rest, request);
	long pid = va_arg(rest, long);
	void *addr = va_arg(rest, void *);
	void *data = va_arg(rest, void *);
	va_end(rest);

	struct iovec *given = data;
	if (request == PTRACE_SETREGSET && addr == (void *)NT_X86_XSTATE && (!whole || given->iov_len < whole)) {
		struct iovec all = { state, sizeof state };
		if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, addr, &all) == 0) {
			whole = all.iov_len;
			if (given->iov_len < whole) {
				memcpy(state, given->iov_base, given->iov_len);
				return syscall(SYS_ptrace, request, pid, addr, &all);
			}
		}
	}
	/* These return the word itself: ptrace(2), "C library/kernel differences". */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		long word;
		if (syscall(SYS_ptrace, request, pid, addr, &word) != 0)
			return -1;
		errno = 0;
		return word;
	}
	return syscall(SYS_ptrace, request, pid, addr, data);
}
