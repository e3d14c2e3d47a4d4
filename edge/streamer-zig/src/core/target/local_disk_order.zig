//! The edge's order to a device whose writes go to its memory first, and then to its local disk
//! (docs/guides/write-caches.md): a word of the kernel's command line, beside the boot's token.

const std = @import("std");
const desired_state = @import("../uplink/desired_state.zig");

pub const LocalDisk = @This();

full: desired_state.WriteCacheFull,
/// Bytes of the disk that may be used; null: all marked ones.
limit_bytes: ?u64 = null,

pub const word = "bootfarm.overflow=";
const place = "local_disk";
pub const text_size_max = word.len + place.len + ",read_only,".len + 20;

/// Writes the order as a word of the command line.
pub fn format(order: *const LocalDisk, writer: *std.Io.Writer) std.Io.Writer.Error!void {
    try writer.print(word ++ place ++ ",{t}", .{order.full});
    if (order.limit_bytes) |bytes| try writer.print(",{d}", .{bytes});
}

/// Parses the text behind `word`; null: it is of another kind, or invalid.
pub fn parse(text: []const u8) ?LocalDisk {
    var parts = std.mem.splitScalar(u8, text, ',');
    if (!std.mem.eql(u8, parts.first(), place)) return null;
    const full = std.meta.stringToEnum(desired_state.WriteCacheFull, parts.next() orelse
        return null) orelse return null;
    const limit: ?u64 = if (parts.next()) |digits| std.fmt.parseInt(u64, digits, 10) catch
        return null else null;
    if (limit == 0 or parts.next() != null) return null;
    return .{ .full = full, .limit_bytes = limit };
}

const testing = std.testing;

test "the device reads the order that the edge wrote, and ignores anything else" {
    for ([_]LocalDisk{
        .{ .full = .stop },
        .{ .full = .read_only, .limit_bytes = 1 },
        .{ .full = .read_only, .limit_bytes = std.math.maxInt(u64) },
    }) |order| {
        var buffer: [LocalDisk.text_size_max]u8 = undefined;
        const text = try std.mem.print(&buffer, "{f}", .{&order});
        try testing.expectEqual(order, LocalDisk.parse(text[LocalDisk.word.len..]).?);
    }
    for ([_][]const u8{
        "",                 "edge,stop",                            "local_disk",         "local_disk,",        "local_disk,halt",
        "local_disk,stop,", "local_disk,stop,0",                    "local_disk,stop,1M", "local_disk,stop,-1", "local_disk,stop,1,2",
        "Local_disk,stop",  "local_disk,stop,18446744073709551616",
    }) |text| try testing.expectEqual(null, LocalDisk.parse(text));
}
