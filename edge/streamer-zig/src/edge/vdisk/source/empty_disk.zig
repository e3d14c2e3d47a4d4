//! The disk of an import without an image: zeros, of the size that `--empty` says. A version of it
//! takes no space; the disk of a machine is captured into it (docs/guides/capture.md).

const std = @import("std");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const SourceImage = @import("../../source_image.zig");
const unnamed_file = @import("unnamed_file.zig");
const linux = std.os.linux;
const FdSource = store_module.image_source.FdSource;

/// What messages call it; no path of a file in a store.
pub const name = "the empty disk";
const sector_size = 512;
const size_max = 64 << 40;

pub fn open(call: *const Call, opened: *SourceImage, text: []const u8) Call.Error!void {
    const size = parse(text) orelse return call.fail(
        "--empty is a number of bytes, a multiple of 512, or one of KiB, MiB, GiB or TiB such as 64G, at most 64T, not '{s}'.",
        .{text},
    );
    const fd = try unnamed_file.make(call, size, name);
    var file = FdSource.fromFd(fd, &cancel.is_asked) catch {
        _ = linux.close(fd);
        return call.fail("The file of the empty disk cannot be read.", .{});
    };
    // The file is a new one each time; what is in it is not.
    file.content_stamp = .{ .kind = .file, .device = 0, .inode = size, .modified_ns = 0 };
    return opened.open(
        call.gpa,
        file,
        .{ .path = name, .is_canceled = &cancel.is_asked },
        &.{ .format = "raw" },
        call.complaint,
    );
}

fn parse(text: []const u8) ?u64 {
    const last = if (text.len > 0) text[text.len - 1] else return null;
    const unit = std.mem.findScalar(u8, "KMGT", std.ascii.toUpper(last));
    const digits = if (unit == null) text else text[0 .. text.len - 1];
    for (digits) |digit| if (!std.ascii.isDigit(digit)) return null;
    const shift: u6 = if (unit) |index| @intCast(10 * (index + 1)) else 0;
    const number = std.fmt.parseInt(u64, digits, 10) catch return null;
    const size = std.math.mul(u64, number, @as(u64, 1) << shift) catch return null;
    return if (size > 0 and size <= size_max and size % sector_size == 0) size else null;
}

test "sizes are bytes or have a unit" {
    const testing = std.testing;
    try testing.expectEqual(256_060_514_304, parse("256060514304"));
    try testing.expectEqual(64 << 30, parse("64G"));
    try testing.expectEqual(1 << 10, parse("1k"));
    const wrong = [_][]const u8{
        "", "0", "G", "511", "-512", "+512", "65T", "1_024", "99999999999999T",
    };
    for (wrong) |text|
        try testing.expectEqual(null, parse(text));
}
