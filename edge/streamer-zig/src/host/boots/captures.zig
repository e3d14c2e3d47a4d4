//! Captures the packets of boots before their stream: keeps them while a boot is in progress, and
//! writes them to a file when the boot ends and a capture is wanted (UPLINK.md, capture).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const Boots = @import("../edge_io.zig").Agent.Boots;
const FilesOfBoots = @import("../files/files_of_boots.zig");
const log = @import("../log.zig");

const Boot = core.boot.Boot;
const CaptureStore = core.boot.CaptureStore;

pub const BootCaptures = @This();

store: CaptureStore,
files: FilesOfBoots,
/// The captures that the control plane or the command line asks for.
wanted: core.uplink.desired_state.Capture,
/// Reports a disk that refuses only once.
is_writable: bool = true,
/// Called after a file was written.
written: ?*const fn (context: *anyopaque) void = null,
context: *anyopaque = undefined,

/// Limits for captures that wait to be sent.
pub const limits_waiting: FilesOfBoots.Limits = .{ .count = 64, .size = 8 << 20 };
/// Limits for the directory of `--capture`.
pub const limits_kept: FilesOfBoots.Limits = .{ .count = 1000, .size = 128 << 20 };

/// Files written per tick; a storm of failed boots is spread over several ticks.
const files_per_tick_max = 8;

/// Reserves memory that is not touched before it is used.
pub fn allocate(gpa: std.mem.Allocator) error{OutOfMemory}!CaptureStore {
    const size = CaptureStore.blocks_default * CaptureStore.block_size;
    const bytes = std.posix.mmap(null, size, .{ .READ = true, .WRITE = true }, .{
        .TYPE = .PRIVATE,
        .ANONYMOUS = true,
        .NORESERVE = true,
    }, -1, 0) catch return error.OutOfMemory;
    const blocks: [*]CaptureStore.Block = @ptrCast(bytes.ptr);
    return .init(gpa, blocks[0..CaptureStore.blocks_default], CaptureStore.slots_default);
}

/// Adds a frame of a boot. Frames after the start of the stream, or long after the end of the
/// boot, are dropped.
pub fn add(captures: *BootCaptures, boot: *const Boot, packet: CaptureStore.Packet) void {
    if (captures.wanted == .never or boot.stream_was_open) return;
    const slot = if (boot.isOver())
        captures.store.find(boot.identity.id)
    else
        captures.store.slotFor(boot.identity.id);
    captures.addTo(slot orelse return, boot, packet);
}

/// Adds a frame of an address behind a router.
pub fn addOfAddress(
    captures: *BootCaptures,
    boots: *Boots,
    ip: base.Ip4,
    packet: CaptureStore.Packet,
) void {
    if (captures.wanted == .never) return;
    const slot = captures.store.findByIp(ip) orelse return;
    const ref = boots.table.findById(slot.boot_id) orelse return;
    const boot = boots.get(ref).?;
    if (!boot.stream_was_open) captures.addTo(slot, boot, packet);
}

fn addTo(
    captures: *BootCaptures,
    slot: *CaptureStore.Slot,
    boot: *const Boot,
    packet: CaptureStore.Packet,
) void {
    slot.ip = boot.facts.ip;
    captures.store.add(slot, packet);
}

/// Runs once a second. A finished boot keeps its slot for one more tick: its last packets may
/// still arrive.
pub fn tick(captures: *BootCaptures, boots: *Boots) void {
    var written: u32 = 0;
    for (captures.store.slots) |*slot| {
        if (slot.boot_id.eql(.zero)) continue;
        const boot = if (boots.table.findById(slot.boot_id)) |ref| boots.get(ref).? else {
            captures.store.release(slot);
            continue;
        };
        const outcome = if (boot.outcome) |*outcome| outcome else continue;
        if (!slot.is_ending) {
            slot.is_ending = true;
            continue;
        }
        if (captures.isWanted(outcome)) {
            if (written == files_per_tick_max) continue;
            written += 1;
            captures.write(slot);
        }
        captures.store.release(slot);
    }
    if (written > 0) if (captures.written) |tell| tell(captures.context);
}

fn isWanted(captures: *const BootCaptures, outcome: *const core.boot.phase.Outcome) bool {
    return switch (captures.wanted) {
        .never => false,
        .always => true,
        .failed => switch (outcome.*) {
            .ready, .local_disk => false,
            .failed, .silent, .superseded => true,
        },
    };
}

fn write(captures: *BootCaptures, slot: *const CaptureStore.Slot) void {
    const size = CaptureStore.header_size + slot.chain.size;
    const head = CaptureStore.fileHeader();
    const parts = captures.store.parts(slot);
    if (captures.files.write(slot.boot_id, size, &head, parts)) |_| {
        captures.is_writable = true;
    } else |_| {
        if (captures.is_writable)
            log.info("Captures cannot be written to their directory; boots are not affected.", .{});
        captures.is_writable = false;
    }
}
