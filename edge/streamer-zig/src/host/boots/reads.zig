//! Keeps what boots have read: a thread writes the list of each finished boot to a file, and has a
//! process of this program sum it up by file, with the map of the version's files. The packet loop
//! only copies bytes. Whatever fails costs a summary, never a boot.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Boots = @import("../edge_io.zig").Agent.Boots;
const FilesOfBoots = @import("../files/files_of_boots.zig");
const StoreChild = @import("../uplink/store_child.zig");
const log = @import("../log.zig");
const sys = @import("../sys.zig");
const Io = std.Io;
const linux = std.os.linux;

const BlockChains = core.boot.BlockChains;
const ReadLog = core.boot.ReadLog;
const read_list = core.boot.read_list;
const assert = std.debug.assert;

pub const BootReads = @This();

gpa: std.mem.Allocator,
io: Io,
/// Everything that boots read.
lists: FilesOfBoots,
/// Summaries that wait to be sent.
reports: FilesOfBoots,
/// Paths of the directories, and of the store, for the process.
lists_path: []const u8,
reports_path: []const u8,
store_path: []const u8,
/// Called by the thread after it wrote a summary.
written: *const fn (context: *anyopaque) void,
context: *anyopaque,
mutex: Io.Mutex = .init,
condition: Io.Condition = .init,
waiting: base.BoundedArray(List, waiting_max) = .empty,
/// A disk that refuses is logged only once.
is_writable: bool = true,

/// A list in memory; its bytes begin with the head.
const List = struct { boot_id: base.Uuid, version_id: base.Uuid, bytes: []u8 };

/// At most 51 MiB; further boots wait in the log, or are not listed.
const waiting_max = 16;
/// Copied in one tick of the loop, so that a storm of boots is spread over several.
const copied_per_tick_max = 4 << 20;
/// After a boot, for the rest of what its device says about it.
const trace_limit_s = 60;
const units_limit_s = 180;

/// Hundreds of boots of a usual system; the oldest go first.
pub const lists_limits: FilesOfBoots.Limits = .{ .count = 1000, .size = 256 << 20 };
pub const reports_limits: FilesOfBoots.Limits = .{ .count = 256, .size = 16 << 20 };
/// Of one summary (UPLINK.md).
pub const report_size_max = 64 << 10;

const own_program = "/proc/self/exe";
/// A first boot of a version makes its map: a minute for a large one on a slow disk.
const child_limit_s = 600;

/// Reserves memory that is not touched before it is used.
pub fn allocate(gpa: std.mem.Allocator) error{OutOfMemory}!ReadLog {
    const size = ReadLog.blocks_default * BlockChains.block_size;
    const bytes = try base.allocUntouched(gpa, u8, size);
    const blocks: [*]BlockChains.Block = @ptrCast(bytes.ptr);
    return .init(gpa, blocks[0..ReadLog.blocks_default], ReadLog.slots_default);
}

/// Runs the thread until the process ends.
pub fn start(reads: *BootReads) std.Thread.SpawnError!void {
    const spawned = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, run, .{reads});
    spawned.detach();
}

/// Runs once a second: hands the lists of finished boots to the thread.
pub fn tick(reads: *BootReads, boots: *Boots) void {
    const kept = &boots.reads;
    var copied: usize = 0;
    for (kept.slots) |*slot| {
        if (slot.boot_id.eql(.zero)) continue;
        if (boots.table.findById(slot.boot_id)) |ref| {
            const boot = boots.get(ref).?;
            if (!boot.isOver()) continue;
            slot.version_id = boot.assignment.version_id;
            slot.started_unix_ms = boot.started_unix_ms;
            slot.over_s +|= 1;
            if (waitsForDevice(kept, slot)) continue;
        } else if (slot.over_s == 0) {
            kept.release(slot);
            continue;
        }
        if (copied > copied_per_tick_max) return;
        if (slot.chain.size > 0 and !reads.give(kept, slot)) return;
        copied += slot.chain.size;
        kept.release(slot);
    }
}

/// A device that has begun to tell what read its disk goes on after the boot, and then tells of its
/// units if it has systemd.
fn waitsForDevice(kept: *const ReadLog, slot: *ReadLog.Slot) bool {
    const is_told = switch (slot.accountOf(.block_trace).state) {
        .none, .broken => return false,
        .partial => false,
        .whole => true,
    };
    if (!is_told) return slot.over_s < trace_limit_s;
    var parts = kept.accountParts(slot, .block_trace).?;
    if (!core.boot.guest_trace.saysSystemd(parts.next() orelse return false)) return false;
    return switch (slot.accountOf(.units).state) {
        .none, .partial => slot.over_s < units_limit_s,
        .whole, .broken => false,
    };
}

/// Returns false if the thread has enough to do: it is asked again.
fn give(
    reads: *BootReads,
    kept: *const ReadLog,
    slot: *ReadLog.Slot,
) bool {
    reads.mutex.lockUncancelable(reads.io);
    defer reads.mutex.unlock(reads.io);
    if (reads.waiting.count == waiting_max) return false;
    const sizes: [2]u32 = .{
        accountSize(slot.accountOf(.block_trace)), accountSize(slot.accountOf(.units)),
    };
    const size = read_list.head_size + slot.chain.size + sizes[0] + sizes[1];
    const bytes = reads.gpa.alloc(u8, size) catch return true;
    bytes[0..read_list.head_size].* = read_list.encodeHead(&.{
        .boot_id = slot.boot_id,
        .version_id = slot.version_id,
        .started_unix_ms = slot.started_unix_ms,
        .dropped = slot.dropped,
        .trace_size = sizes[0],
        .units_size = sizes[1],
    });
    var at: usize = read_list.head_size;
    for ([_]?BlockChains.Parts{
        kept.parts(slot),
        kept.accountParts(slot, .block_trace),
        kept.accountParts(slot, .units),
    }) |chain| {
        var parts = chain orelse continue;
        while (parts.next()) |part| {
            @memcpy(bytes[at..][0..part.len], part);
            at += part.len;
        }
    }
    assert(at == bytes.len);
    reads.waiting.appendAssumeCapacity(.{
        .boot_id = slot.boot_id,
        .version_id = slot.version_id,
        .bytes = bytes,
    });
    reads.condition.signal(reads.io);
    return true;
}

fn accountSize(account: *const ReadLog.Account) u32 {
    return if (account.state == .whole) account.chain.size else 0;
}

fn run(reads: *BootReads) void {
    while (true) reads.handle(&reads.take());
}

fn take(reads: *BootReads) List {
    reads.mutex.lockUncancelable(reads.io);
    defer reads.mutex.unlock(reads.io);
    while (reads.waiting.count == 0)
        reads.condition.waitUncancelable(reads.io, &reads.mutex);
    return reads.waiting.swapRemove(0);
}

fn handle(reads: *BootReads, list: *const List) void {
    defer reads.gpa.free(list.bytes);
    const is_kept = reads.keep(list);
    if (!is_kept and reads.is_writable)
        log.info("What boots read cannot be kept on this disk; boots are not affected.", .{});
    reads.is_writable = is_kept;
    if (is_kept and reads.sumUp(list)) reads.written(reads.context);
}

fn keep(reads: *BootReads, list: *const List) bool {
    const Nothing = struct {
        pub fn next(_: *@This()) ?[]const u8 {
            return null;
        }
    };
    const nothing: Nothing = .{};
    reads.lists.write(list.boot_id, list.bytes.len, list.bytes, nothing) catch return false;
    return true;
}

/// Returns false where there is no summary: the version may be gone, or the process failed.
fn sumUp(reads: *BootReads, list: *const List) bool {
    reads.reports.makeRoom(report_size_max);
    var buffers: [2][std.posix.PATH_MAX]u8 = undefined;
    var arguments: core.uplink.store_job.Arguments = .{};
    core.uplink.store_job.writeFilesRead(&arguments, own_program, reads.store_path, .{
        .version_id = list.version_id,
        .reads = pathOf(&buffers[0], reads.lists_path, &reads.lists, list.boot_id) orelse
            return false,
        .report = pathOf(&buffers[1], reads.reports_path, &reads.reports, list.boot_id) orelse
            return false,
    });
    var child = StoreChild.start(&arguments) catch return false;
    if (!hasEnded(child.pid_fd)) {
        child.stop();
        return false;
    }
    return child.finish() == 0;
}

fn pathOf(
    buffer: []u8,
    directory: []const u8,
    files: *const FilesOfBoots,
    boot_id: base.Uuid,
) ?[]const u8 {
    var name: FilesOfBoots.Name = undefined;
    const parts = .{ directory, files.nameOf(boot_id, &name) };
    const path = std.mem.print(buffer, "{s}/{s}", parts) catch return null;
    const size_max = core.uplink.store_job.Arguments.store_path_size_max;
    return if (path.len > size_max) null else path;
}

fn hasEnded(pid_fd: i32) bool {
    const until_us = sys.monotonicUs() + child_limit_s * std.time.us_per_s;
    while (true) {
        const now_us = sys.monotonicUs();
        if (now_us >= until_us) return false;
        var polled = [_]linux.pollfd{.{ .fd = pid_fd, .events = linux.POLL.IN, .revents = 0 }};
        var timeout: linux.timespec =
            .{ .sec = @intCast((until_us - now_us) / std.time.us_per_s + 1), .nsec = 0 };
        const rc = linux.ppoll(&polled, 1, &timeout, null);
        if (sys.check(rc)) |count| {
            if (count > 0) return true;
        } else |err| if (err != error.Interrupted) return false;
    }
}
