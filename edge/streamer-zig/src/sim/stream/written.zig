//! What an edge has carried out for one boot, by the serial number of each write: finds a request
//! that is carried out twice, and a write that comes after a later one of the same sector.

const std = @import("std");
const content = @import("content.zig");
const link = @import("link.zig");
const Invariants = @import("invariants.zig");
const StreamBoot = @import("boot.zig");

pub const Written = @This();

const sector_size = content.sector_size;
/// Requests of a session that are remembered, by their ids.
const carried_max = 256;

/// Writer of what is known here; 0: nothing is known.
writer: u32 = 0,
/// Serial number of the latest write of each sector; 0: unknown.
serials: [StreamBoot.sectors_max]u32 = @splat(0),
carried: [carried_max]?u32 = @splat(null),

/// A request before it is carried out.
pub const Request = struct {
    id: u32,
    first: u32,
    count: u32,
    kind: union(enum) { flush, discard, write: u32 },
};

/// The server has begun a window of requests.
pub fn forgetRequests(written: *Written) void {
    written.carried = @splat(null);
}

/// Reads a write, all bytes of which must be those of the device.
pub fn requestOf(
    invariants: *Invariants,
    boot: *const StreamBoot,
    id: u32,
    offset: u64,
    bytes: []const u8,
) Request {
    const first = offset / sector_size;
    const stamp = content.stampOf(content.wordsOf(bytes[0..sector_size])[0], first, 0);
    const serial: u32 = @truncate(stamp);
    var is_right = boot.stampOf(serial) == stamp and serial != 0;
    for (0..bytes.len / sector_size) |index| {
        const sector = bytes[index * sector_size ..][0..sector_size];
        if (!content.isFilled(sector, first + index, stamp)) is_right = false;
    }
    if (!is_right) invariants.violate(
        .bytes_are_right,
        "{d} bytes that boot {d} writes at {d} are not its own",
        .{ bytes.len, boot.number, offset },
    );
    return .{
        .id = id,
        .first = @intCast(first),
        .count = @intCast(bytes.len / sector_size),
        .kind = .{ .write = serial },
    };
}

pub fn note(
    written: *Written,
    invariants: *Invariants,
    boot: *const StreamBoot,
    request: *const Request,
) void {
    if (written.writer != boot.writer) written.* = .{ .writer = boot.writer };
    const carried = &written.carried[request.id % carried_max];
    if (carried.* == request.id) invariants.violate(
        .carried_out_once,
        "request {d} of boot {d} is carried out a second time",
        .{ request.id, boot.number },
    );
    carried.* = request.id;
    const serial = switch (request.kind) {
        .flush => return,
        .write => |serial| serial,
        .discard => boot.discardSerial(request.first, request.count) orelse
            return invariants.violate(
                .writes_in_order,
                "a discard whose end boot {d} has heard is carried out",
                .{boot.number},
            ),
    };
    for (written.serials[request.first..][0..request.count]) |*latest| {
        if (latest.* >> 1 > serial >> 1) invariants.violate(
            .writes_in_order,
            "write {d} of boot {d} comes after write {d} of the same sector",
            .{ serial >> 1, boot.number, latest.* >> 1 },
        );
        latest.* = serial;
    }
}
