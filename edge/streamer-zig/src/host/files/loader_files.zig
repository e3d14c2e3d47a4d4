//! Reads what a kernel and an initramfs state about themselves, from the start of their files.

const std = @import("std");
const core = @import("core");
const store = @import("store");
const wire = @import("wire");

const kernel_image = wire.kernel_image;
const initramfs_mark = wire.initramfs_mark;
const StoreFile = store.StoreFile;

pub const Problem = kernel_image.Problem || error{NotReadable};

pub fn inspect(
    kernel: *const StoreFile,
    initrd: ?*const StoreFile,
) Problem!core.loader.kernel_fit.Files {
    var buffer: [kernel_image.head_size_max]u8 = undefined;
    const head = try headOf(kernel, &buffer);
    const image = try kernel_image.inspect(head, kernel.size);
    const ramfs = initrd orelse return .{ .kernel = image };
    const mark_head = try headOf(ramfs, buffer[0..initramfs_mark.head_size_max]);
    return .{ .kernel = image, .made_for = initramfs_mark.read(mark_head) };
}

/// Returns the first bytes of the file, as many as fit.
fn headOf(file: *const StoreFile, buffer: []u8) error{NotReadable}![]const u8 {
    const size: usize = @intCast(@min(file.size, buffer.len));
    file.read(buffer[0..size], 0) catch return error.NotReadable;
    return buffer[0..size];
}

/// Describes a problem of the kernel as the end of a sentence that begins with its path.
pub fn sentence(problem: Problem) []const u8 {
    return switch (problem) {
        error.NotReadable => store.store_file.sentence(error.NotReadable, .plain),
        else => |other| kernel_image.sentence(other),
    };
}

const testing = std.testing;

test "kernel and initramfs are read from the start of their files" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const io = testing.io;
    var content: [initramfs_mark.content_size_max]u8 = undefined;
    var entry: [initramfs_mark.head_size_max]u8 = undefined;
    const mark: initramfs_mark.InitramfsMark =
        .{ .release = .init("6.2"), .architecture = .x86_64 };
    const ramfs = initramfs_mark.testEntry(mark.write(&content), &entry);
    try tmp.dir.writeFile(io, .{ .sub_path = "kernel", .data = &kernel_image.test_x86 });
    try tmp.dir.writeFile(io, .{ .sub_path = "initrd", .data = ramfs });
    try tmp.dir.writeFile(io, .{ .sub_path = "cut", .data = kernel_image.test_x86[0..1000] });
    var kernel = try StoreFile.openBelow(tmp.dir.handle, "kernel", .plain);
    defer kernel.close();
    var initrd = try StoreFile.openBelow(tmp.dir.handle, "initrd", .plain);
    defer initrd.close();
    var cut = try StoreFile.openBelow(tmp.dir.handle, "cut", .plain);
    defer cut.close();
    const files = try inspect(&kernel, &initrd);
    try testing.expectEqualStrings("6.1.0-53-amd64", files.kernel.release.?.slice());
    try testing.expectEqualStrings("6.2", files.made_for.?.release.slice());
    try testing.expectEqual(null, (try inspect(&kernel, &kernel)).made_for);
    try testing.expectError(error.CutShort, inspect(&cut, &initrd));
    try testing.expectError(error.NotAKernel, inspect(&initrd, null));
}
