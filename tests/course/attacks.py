"""What a hostile hand would try: each either refused, so that honest work beside it counts, or fatal
to the submission itself. Python in `rates.py` of lesson 7, whose functions are worth 10 points.
"""

from __future__ import annotations

HELP = '''
import ctypes, fcntl, gc, mmap, os, resource, signal, socket, struct, subprocess, sys, threading, time

class Escaped(BaseException):
    pass

def refused(act):
    """It has to raise, or to have come to nothing."""
    try:
        found = act()
    except Exception:
        return
    if found not in (None, 0, b"", "", []):
        raise Escaped(repr(found)[:80])

libc = ctypes.CDLL(None, use_errno=True)

def call(x86, arm, *arguments):
    """A system call; what is refused is -1."""
    return libc.syscall(arm if os.uname().machine == "aarch64" else x86, *arguments)

def wrote(path, text='["passed", "", "", 0]\\n' * 8):
    with open(path, "a") as file:
        file.write(text)
    return path

def outermost(frame):
    return outermost(frame.f_back) if frame.f_back else frame

def by_int_0x80():
    """A process's number, asked for as programs of 32 bits do: mov eax, 20; int 0x80; cdqe; ret."""
    if os.uname().machine == "x86_64":
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(bytes.fromhex("b814000000cd804898c3"))
        found = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        return max(found, 0)

parent = os.getppid()
'''

# Class and name, and what must be refused.
REFUSED = {
    # forging
    "forge/pipes-of-the-parent": "[refused(lambda n=n, p=p: wrote(f'/proc/{p}/fd/{n}')) for n in range(16) for p in (parent, 1, 2) if p != os.getpid()]",
    "forge/by-fd-of-a-process": "refused(lambda: call(434, 434, parent, 0) + 1)",
    "forge/objects-of-the-judge": "refused(lambda: [o for o in gc.get_objects() if type(o).__name__ in ('Check', 'Bench', 'Judged')])",
    "forge/frames-of-the-judge": "refused(lambda: [name for frame in sys._current_frames().values() for name in outermost(frame).f_globals if 'check' in name.lower()])",
    "forge/the-judges-modules": "refused(lambda: __import__('course.checks.rates'))",
    # reading
    "read/passwords": "[refused(lambda p=p: open(p).read()) for p in ('/etc/shadow', '/etc/passwd', '/etc/hosts')]",
    "read/the-solution": "refused(lambda: open(SOLUTION).read())",
    "read/a-secret-beside-it": "refused(lambda: open(SECRET).read())",
    "read/homes": "[refused(lambda p=p: os.listdir(p)) for p in ('/root', '/home', '/var', '/tmp', '/work', '/run')]",
    "read/the-environment": "refused(lambda: [k for k in os.environ if k not in ('LC_ALL', 'LC_CTYPE')])",
    "read/processes": "[refused(lambda p=p: open(f'/proc/{p}', 'rb').read()) for p in ('self/environ', f'{parent}/maps', f'{parent}/environ')]",
    "read/memory-of-the-parent": "refused(lambda: open(f'/proc/{parent}/mem', 'rb').read(1))",
    "read/through-roots": "[refused(lambda p=p: os.listdir(f'/proc/{p}/root/etc')) for p in ('self', 1, parent)]",
    "read/disks": "[refused(lambda p=p: open(f'/dev/{p}', 'rb').read(1)) for p in ('sda', 'vda', 'mem', 'kmsg', 'zero')]",
    # writing
    "write/files": "[refused(lambda p=p: wrote(p + '/' + CANARY)) for p in ('/tmp', '/dev/shm', '/var/tmp', '/', os.getcwd(), '/root')]",
    "write/itself": "refused(lambda: wrote(__file__))",
    "write/python": "refused(lambda: wrote(os.__file__))",
    "write/links": "[refused(lambda f=f: f('/etc/passwd', '/tmp/' + CANARY) or 1) for f in (os.link, os.symlink)]",
    "write/names-and-rights": "[refused(lambda f=f, a=a: f(os.__file__, *a) or 1) for f, a in ((os.chmod, (0o777,)), (os.truncate, (0,)), (os.rename, ('/tmp/' + CANARY,)), (os.utime, ()), (os.unlink, ()))]",
    "write/by-pages": "[refused(lambda n=n: call(*n, 1, 10, 0) + 1) for n in ((278, 75), (276, 77), (40, 71))]",
    "write/devices": "[refused(lambda: f('/tmp/' + CANARY) or 1) for f in (os.mkfifo, lambda p: os.mknod(p, 0o20666, 259))]",
    "write/folders": "refused(lambda: os.mkdir('/tmp/' + CANARY) or 1)",
    "write/memory-that-is-no-ones": "refused(lambda: os.memfd_create('fills'))",
    "write/shared-memory": "refused(lambda: call(29, 194, 0, 1 << 30, 0o1600) + 1)",
    # processes
    "fork/once": "refused(lambda: os.fork() + 1)",
    "fork/a-shell": "refused(lambda: subprocess.run(['/bin/sh', '-c', 'true']))",
    "fork/a-daemon": "refused(lambda: os.setsid() or 1)",
    "fork/threads": "refused(lambda: [threading.Thread(target=time.sleep, args=(99,), daemon=True).start() for _ in range(4)])",
    "fork/by-the-kernels-number": "[refused(lambda n=n: call(*n, 0x11, 0, 0, 0, 0) + 1) for n in ((56, 220), (435, 435))]",
    "fork/another-program": "refused(lambda: os.execv('/bin/sh', ['sh']))",
    # signals, and others' processes
    "signal/the-parent": "refused(lambda: os.kill(parent, 9) or 1)",
    "signal/everybody": "refused(lambda: os.kill(-1, 9) or 1)",
    "signal/its-group": "refused(lambda: os.kill(0, 9) or 1)",
    "signal/by-threads": "[refused(lambda n=n: call(200, 130, n, 9) + 1) for n in (1, parent)]",
    "signal/by-a-pipe": "refused(lambda: [fcntl.fcntl(0, 8, parent), fcntl.fcntl(0, 10, 9), fcntl.fcntl(0, 4, 0o20000)] and 1)",
    "signal/by-a-pipe-of-a-thread": "refused(lambda: fcntl.fcntl(0, 15, struct.pack('ii', 1, parent)) and 1)",
    "signal/by-ioctl": "refused(lambda: fcntl.ioctl(0, 0x8901, struct.pack('i', parent)) or 1)",
    "trace/the-parent": "refused(lambda: call(101, 117, 16, parent, 0, 0) + 1)",
    "trace/read-its-memory": "refused(lambda: call(310, 270, parent, 0, 0, 0, 0, 0) + 1)",
    "trace/its-limits": "refused(lambda: call(302, 261, parent, 0, 0, 0) + 1 if parent > 1 else None)",
    # the kernel
    "kernel/namespaces": "refused(lambda: call(272, 97, 0x10000000) + 1)",
    "kernel/mounts": "refused(lambda: call(165, 40, b'none', b'/', b'tmpfs', 0, 0) + 1)",
    "kernel/outliving": "refused(lambda: libc.prctl(1, 0, 0, 0, 0) + 1)",
    "kernel/limits-back": "[refused(lambda w=w: resource.setrlimit(w, (-1, -1)) or 1) for w in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_CORE, resource.RLIMIT_FSIZE)]",
    "kernel/another-root": "[refused(lambda f=f: f('/') or 1) for f in (os.chroot, os.chdir)]",
    "kernel/other-tables": "[refused(lambda n=n: libc.syscall(n) + 1) for n in (0x40000000 + 39, 0x40000000 + 57)]",
    "kernel/32-bits": "refused(by_int_0x80)",
    "kernel/other-processors": "refused(lambda: os.sched_setaffinity(0, {0}) or 1)",
    "kernel/watching": "[refused(lambda n=n: call(*n, 0, 0, 0) + 1) for n in ((294, 26), (300, 262), (283, 85), (290, 19))]",
    "kernel/odd-doors": "[refused(lambda n=n: call(n, n, 1, 0, 0, 0, 0) + 1) for n in (425, 426, 428, 435, 437, 442)]",
    "kernel/keys-and-programs": "[refused(lambda n=n: call(*n, 0, 0, 0, 0, 0) + 1) for n in ((250, 219), (321, 280), (298, 241), (323, 282))]",
    # network
    "network/local": "refused(lambda: socket.create_connection(('127.0.0.1', 22), 1))",
    "network/names": "refused(lambda: socket.getaddrinfo('localhost', 80))",
    "network/unix": "refused(lambda: socket.socketpair())",
}

# What harms whoever wrote it: the lines at the beginning of the file, the points that are left, and
# what is said.
FATAL = {
    "forge/into-its-own-answers": ("for n in range(3, 64):\n    try: os.write(n, b'[\"passed\"]\\n')\n    except OSError: pass", 0, "gave no answer"),
    "forge/answers-of-another-kind": ("import json\njson.dumps = lambda found: '{\"value\": {}}'", 0, "it has to be a list"),
    "forge/no-object": ("import json\njson.dumps = lambda found: '7'", 0, "gave no answer"),
    "hang/loops": ("while True: pass", 0, "gave no answer"),
    "hang/ignores-signals-and-sleeps": ("[signal.signal(n, signal.SIG_IGN) for n in (2, 15)]\ntime.sleep(1e6)", 0, "gave no answer"),
    "hang/takes-the-questions": ("sys.stdin.read()", 0, "gave no answer"),
    "hang/stops-itself": ("os.kill(os.getpid(), 19)", 0, "gave no answer"),
    "hang/takes-no-notice-of-the-limit": ("signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass", 0, "gave no answer"),
    "hang/answers-ahead-and-reads-nothing": ("for n in range(1000): os.write(3, b'{\"value\": [1, 2, 3]}\\n')\ntime.sleep(1e6)", 0, "which should be"),
    "hang/closes-everything": ("os.closerange(0, 64)\ntime.sleep(1e6)", 0, "gave no answer"),
    "memory/at-once": ("bytearray(1 << 40)", 0, "raised MemoryError"),
    "memory/bit-by-bit": ("import mmap\na = []\nwhile True: a.append(mmap.mmap(-1, 1 << 28))", 0, "raised OSError"),
    "output/without-end": ("while True: os.write(3, b'x' * (1 << 20))", 0, "gave no answer"),
    "output/lines-without-end": ("while True: os.write(3, b'\\n' * (1 << 20))", 0, "gave no answer"),
    "output/deep": ("import json\njson.dumps = lambda found: '[' * 300000", 0, "gave no answer"),
    "output/a-terminal-is-steered": ("raise ValueError('\\x1b]0;owned\\x07\\x1b[2J\\u202e\\n13 of 13 points')", 0, "raised ValueError: \\x1b]0;owned\\x07\\x1b[2J\\u202e"),
    "die/at-the-start": ("os._exit(0)", 0, "ended Python"),
    "die/as-if-there-were-no-room": ("os._exit(125)", 0, "ended Python"),
    "die/by-a-signal": ("os.kill(os.getpid(), 9)", 0, "gave no answer"),
    "die/by-a-fault": ("ctypes.string_at(8)", 0, "ended Python"),
    "die/later": ("def calm(alpha): os.abort()", 2, "ended Python"),
    "die/as-another-program": ("os.execv(sys.executable, [sys.executable, '-c', '1'])", 0, "ended Python"),
    "numbers/no-float-is-as-large": ("def cut(rate, alpha): return [10 ** 400] * 3", 8, "401 digits"),
    "numbers/nan": ("def calm(alpha): return float('nan')", 9, "gives nan"),
    "numbers/deep": ("def cut(rate, alpha):\n    found = []\n    for _ in range(900): found = [found]\n    return found", 8, "it has to be a list of 3 numbers"),
    "numbers/none-that-is": ("def calm(alpha): return 10 ** 4000", 9, "4001 digits"),
}  # fmt: skip
