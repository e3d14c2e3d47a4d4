//! Processor time of this process, of a server's, and of the whole machine.

const std = @import("std");
const linux = std.os.linux;

pub const Times = struct {
    client_ns: u64,
    /// 0 if no server is watched.
    server_ns: u64,
    /// All processors and all users; in steps of 10 ms.
    machine_ns: u64,

    pub fn now(server_pid: i32) Times {
        return .{
            .client_ns = read(@backingInt(linux.clockid_t.PROCESS_CPUTIME_ID)),
            .server_ns = if (server_pid == 0) 0 else read(clockOf(server_pid)),
            .machine_ns = machineBusyNs() orelse 0,
        };
    }

    pub fn since(times: Times, before: Times) Times {
        return .{
            .client_ns = times.client_ns -| before.client_ns,
            .server_ns = times.server_ns -| before.server_ns,
            .machine_ns = times.machine_ns -| before.machine_ns,
        };
    }
};

/// The processor clock of another process with all its threads (clock_getcpuclockid(3): the
/// inverted id above three bits that select the clock, 2 for the scheduler's count).
fn clockOf(pid: i32) u32 {
    return @bitCast((~pid << 3) | 2);
}

fn read(clock: u32) u64 {
    var ts: linux.timespec = undefined;
    const rc = linux.syscall2(.clock_gettime, clock, @intFromPtr(&ts));
    if (linux.errno(rc) != .SUCCESS) return 0;
    return @as(u64, @intCast(ts.sec)) * std.time.ns_per_s + @as(u64, @intCast(ts.nsec));
}

/// First line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq in
/// hundredths of a second.
fn machineBusyNs() ?u64 {
    const rc = linux.open("/proc/stat", .{ .CLOEXEC = true }, 0);
    if (linux.errno(rc) != .SUCCESS) return null;
    const fd: i32 = @intCast(rc);
    defer _ = linux.close(fd);
    var buffer: [256]u8 = undefined;
    const count = linux.read(fd, &buffer, buffer.len);
    if (linux.errno(count) != .SUCCESS) return null;
    var words = std.mem.tokenizeScalar(u8, buffer[0..count], ' ');
    _ = words.next();
    var busy: u64 = 0;
    for (0..7) |index| {
        const ticks = std.fmt.parseInt(u64, words.next() orelse return null, 10) catch return null;
        const is_idle = index == 3 or index == 4;
        if (!is_idle) busy += ticks;
    }
    return busy * 10 * std.time.ns_per_ms;
}

pub fn nowNs() u64 {
    var ts: linux.timespec = undefined;
    _ = linux.clock_gettime(.MONOTONIC, &ts);
    return @as(u64, @intCast(ts.sec)) * std.time.ns_per_s + @as(u64, @intCast(ts.nsec));
}
