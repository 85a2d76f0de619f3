# SPDX-License-Identifier: Apache-2.0
"""Counters of the machine and of processes, read from /proc, and rounds that nothing disturbed."""

import os, re

TICKS = os.sysconf("SC_CLK_TCK")
STEAL_MAX = 0.02
REPEATS_MAX = 3


def read(path):
    with open(path) as file:
        return file.read()


def processor_ticks():
    """All of them, idle ones included, and those that the host took."""
    numbers = [int(word) for word in read("/proc/stat").split("\n", 1)[0].split()[1:]]
    return sum(numbers[:8]), numbers[7]


def disk_counts(folder):
    """Flushes and written bytes of the disk that holds a folder; none where the system does not tell."""
    device = os.stat(folder).st_dev
    for line in read("/proc/diskstats").splitlines():
        words = line.split()
        if (int(words[0]), int(words[1])) == (os.major(device), os.minor(device)) and len(words) > 18:
            return int(words[18]), int(words[9]) * 512
    return None


class Process:
    """The counters of a process at one time."""

    def __init__(self, pid):
        fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
        self.microseconds = (int(fields[11]) + int(fields[12])) * 1e6 / TICKS
        self.switches = self.written = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                lines = read(f"/proc/{pid}/task/{task}/status").splitlines()
            except OSError:
                continue
            self.switches += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
        for line in read(f"/proc/{pid}/io").splitlines():
            if line.startswith("write_bytes"): self.written = int(line.split()[1])


def memory(pid):
    """Resident bytes."""
    return int(read(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kernel_memory():
    """Bytes of the kernel's own objects, such as sockets."""
    return 1024 * int(re.search(r"Slab:\s+(\d+)", read("/proc/meminfo"))[1])


class Rounds:
    """Runs rounds, and those again from which the host took too much."""

    def __init__(self):
        self.steal, self.repeated, self.kept = [], 0, 0

    def run(self, measure):
        """The result of a function, of the quietest of at most four calls."""
        best = None
        for attempt in range(1 + REPEATS_MAX):
            all_before, stolen_before = processor_ticks()
            result = measure()
            all_after, stolen_after = processor_ticks()
            share = (stolen_after - stolen_before) / max(1, all_after - all_before)
            if best is None or share < best[0]: best = (share, result)
            if share <= STEAL_MAX: break
            self.repeated += 1
        self.steal.append(best[0])
        if best[0] > STEAL_MAX: self.kept += 1
        return best[1]


def counted(pid, folder, load):
    """Runs a load on a process, and adds what it cost there to the result."""
    before, disk_before = Process(pid), disk_counts(folder)
    result = load()
    after, disk_after = Process(pid), disk_counts(folder)
    number = max(1, result["requests"])
    result["cpu"] = (after.microseconds - before.microseconds) / number
    result["switches"] = (after.switches - before.switches) / number
    result["written"] = (after.written - before.written) / number
    flushes = disk_after[0] - disk_before[0] if disk_after else 0
    result["per_flush"] = number / flushes if flushes else None
    return result
