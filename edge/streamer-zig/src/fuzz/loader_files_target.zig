//! Fuzzes kernels and initramfs files, which come from untrusted images.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const kernel_image = wire.kernel_image;
const initramfs_mark = wire.initramfs_mark;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

/// Damages lengths and magic words more often than the zeros between them.
const x86_fields = [_]usize{ 0x1f1, 0x1f4, 0x1f5, 0x1f6, 0x202, 0x206, 0x207, 0x20e, 0x20f, 0x300 };
const pe_fields =
    [_]usize{ 0, 4, 8, 11, 12, 15, 56, 60, 61, 62, 63, 64, 68, 70, 71, 84, 104, 108, 111 };

pub fn kernel(case: *Case) Violation!bool {
    var buffer: [kernel_image.head_size_max]u8 = undefined;
    const bytes = makeKernel(case, &buffer);
    // A file may continue behind the part that is read.
    const size = if (bytes.len == buffer.len) bytes.len + case.prng.below(1 << 40) else bytes.len;
    const image = kernel_image.inspect(bytes, size) catch return false;
    if (image.release) |release| {
        try expect(release.size > 0, "a release is not empty");
        for (release.slice()) |byte|
            try expect(std.ascii.isGraphical(byte), "a release is a printable word");
    }
    return true;
}

fn makeKernel(case: *Case, buffer: *[kernel_image.head_size_max]u8) []u8 {
    const prng = &case.prng;
    if (prng.chance(1, 16)) return case.garbage(buffer);
    const seeds = [_][]const u8{ &kernel_image.test_x86, &kernel_image.test_arm64 };
    const is_x86 = prng.chance(1, 2);
    const seed = seeds[if (is_x86) 0 else 1];
    @memcpy(buffer[0..seed.len], seed);
    if (prng.chance(1, 4)) @memcpy(buffer[4..8], "zimg");
    if (prng.chance(1, 4)) @memcpy(buffer[56..60], &@as([4]u8, @splat(0)));
    const fields: []const usize = if (is_x86) &x86_fields else &pe_fields;
    for (0..@intCast(prng.below(5))) |_| buffer[prng.pick(usize, fields)] = case.byte();
    if (prng.chance(1, 8)) {
        prng.fill(buffer[seed.len..]);
        return buffer;
    }
    return if (prng.chance(1, 2)) buffer[0..seed.len] else case.mutate(buffer, seed.len);
}

pub fn mark(case: *Case) Violation!bool {
    var buffer: [initramfs_mark.head_size_max]u8 = undefined;
    const bytes = makeMark(case, &buffer);
    const found = initramfs_mark.read(bytes) orelse return false;
    var content: [initramfs_mark.content_size_max]u8 = undefined;
    var entry: [initramfs_mark.head_size_max]u8 = undefined;
    const again = initramfs_mark.read(initramfs_mark.testEntry(found.write(&content), &entry)).?;
    try fuzz_case.expectEqual(found, again, "a mark that was read is written and read the same");
    return true;
}

fn makeMark(case: *Case, buffer: *[initramfs_mark.head_size_max]u8) []u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    var release: [64]u8 = undefined;
    const made: initramfs_mark.InitramfsMark = .{
        .release = .init(case.text(&release, 1)),
        .architecture = case.prng.pick(kernel_image.Architecture, &.{ .x86, .x86_64, .aarch64 }),
    };
    var content: [initramfs_mark.content_size_max]u8 = undefined;
    const entry = initramfs_mark.testEntry(made.write(&content), buffer);
    return if (case.prng.chance(1, 2)) buffer[0..entry.len] else case.mutate(buffer, entry.len);
}
