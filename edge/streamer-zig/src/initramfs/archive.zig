//! Puts the files of an initramfs in their places.

const std = @import("std");
const assert = std.debug.assert;
const Writer = std.Io.Writer;
const wire = @import("wire");
const CpioWriter = @import("cpio.zig");

/// The boot scripts, here and in the initramfs that a prepared system builds for itself.
pub const init_script = @embedFile("init.sh");
pub const udhcpc_script = @embedFile("udhcpc.sh");
pub const adapt_root_script = @embedFile("adapt-root.sh");

/// Programs of busybox that these scripts use.
pub const applets = [_][]const u8{
    "awk",   "cat",  "cp",    "cut",      "dmesg",  "echo",        "find",   "grep",  "ip",
    "ln",    "ls",   "mkdir", "modprobe", "printf", "mount",       "reboot", "seq",   "sh",
    "sleep", "sort", "tail",  "tr",       "udhcpc", "switch_root", "umount", "uname", "poweroff",
};

pub const ModuleFile = struct {
    /// Relative to the release's folder, as in modules.dep.
    path: []const u8,
    content: []const u8,
};

pub const Content = struct {
    release: []const u8,
    busybox: []const u8,
    target: []const u8,
    modules: []const ModuleFile,
    /// modules.dep and modules.alias of just these modules.
    dep: []const u8,
    alias: []const u8,
};

/// Writes the first archive, which is never compressed: it names the kernel, so that an edge can
/// check it before it serves the initramfs. Returns its size in bytes.
pub fn writeMark(writer: *Writer, mark: *const wire.initramfs_mark.InitramfsMark) Writer.Error!u64 {
    var buffer: [wire.initramfs_mark.content_size_max]u8 = undefined;
    var cpio: CpioWriter = .{ .writer = writer };
    try cpio.file(wire.initramfs_mark.name, 0o644, mark.write(&buffer));
    try cpio.finish();
    return cpio.size;
}

/// Writes the archive uncompressed and returns its size in bytes. The caller frees `scratch`.
pub fn write(
    scratch: std.mem.Allocator,
    writer: *Writer,
    content: Content,
) (Writer.Error || error{OutOfMemory})!u64 {
    var cpio: CpioWriter = .{ .writer = writer };
    for ([_][]const u8{ "bin", "dev", "etc", "lib", "lib/modules", "proc", "run", "sys" }) |name|
        try cpio.directory(name);
    try cpio.symbolicLink("sbin", "bin");
    // The kernel opens it for the first process, before anything is mounted.
    try cpio.characterDevice("dev/console", 5, 1);
    try cpio.file("init", 0o755, init_script);
    try cpio.file("etc/udhcpc.sh", 0o755, udhcpc_script);
    try cpio.file("etc/adapt-root.sh", 0o755, adapt_root_script);
    try cpio.file("bin/busybox", 0o755, content.busybox);
    for (applets) |applet| {
        var name: [32]u8 = undefined;
        try cpio.symbolicLink(
            std.mem.print(&name, "bin/{s}", .{applet}) catch unreachable,
            "busybox",
        );
    }
    try cpio.file("bin/bootfarm-target", 0o755, content.target);
    try writeModules(scratch, &cpio, content);
    try cpio.finish();
    return cpio.size;
}

fn writeModules(scratch: std.mem.Allocator, cpio: *CpioWriter, content: Content) !void {
    const folder = try std.fmt.allocPrint(scratch, "lib/modules/{s}", .{content.release});
    try cpio.directory(folder);
    try cpio.file(
        try std.fmt.allocPrint(scratch, "{s}/modules.dep", .{folder}),
        0o644,
        content.dep,
    );
    try cpio.file(
        try std.fmt.allocPrint(scratch, "{s}/modules.alias", .{folder}),
        0o644,
        content.alias,
    );
    var made: std.array_hash_map.String(void) = .empty;
    for (content.modules) |module| {
        var end: usize = 0;
        while (std.mem.findScalarPos(u8, module.path, end, '/')) |slash| : (end = slash + 1) {
            const parent = module.path[0..slash];
            if ((try made.getOrPut(scratch, parent)).found_existing) continue;
            try cpio.directory(try std.fmt.allocPrint(scratch, "{s}/{s}", .{ folder, parent }));
        }
        try cpio.file(
            try std.fmt.allocPrint(scratch, "{s}/{s}", .{ folder, module.path }),
            0o644,
            module.content,
        );
    }
}

/// Returns the first applet that a busybox lacks, or null. The binary holds the names of its
/// applets in a row, each ended by a zero byte.
pub fn missingApplet(busybox: []const u8) ?[]const u8 {
    for (applets) |applet| {
        var buffer: [32]u8 = undefined;
        const name = std.mem.print(&buffer, "\x00{s}\x00", .{applet}) catch unreachable;
        if (std.mem.find(u8, busybox, name) == null) return applet;
    }
    return null;
}

const testing = std.testing;

test "a module's folders come before it, each once" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var written: Writer.Allocating = .init(arena.allocator());
    const size = try write(arena.allocator(), &written.writer, .{
        .release = "6.1.0",
        .busybox = "",
        .target = "",
        .modules = &.{
            .{ .path = "kernel/drivers/block/nbd.ko", .content = "nbd" },
            .{ .path = "kernel/drivers/net/virtio_net.ko", .content = "net" },
        },
        .dep = "",
        .alias = "",
    });
    const text = written.written();
    try testing.expectEqual(text.len, size);
    const folder = "lib/modules/6.1.0/kernel/drivers\x00";
    try testing.expectEqual(1, std.mem.count(u8, text, folder));
    const places = [_]usize{
        std.mem.find(u8, text, "lib/modules/6.1.0\x00").?,
        std.mem.find(u8, text, folder).?,
        std.mem.find(u8, text, "drivers/block\x00").?,
        std.mem.find(u8, text, "block/nbd.ko\x00").?,
        std.mem.find(u8, text, "drivers/net\x00").?,
        std.mem.find(u8, text, "TRAILER!!!").?,
    };
    try testing.expect(std.sort.isSorted(usize, &places, {}, std.sort.asc(usize)));
}

test "an edge can read the mark" {
    var buffer: [1024]u8 = undefined;
    var writer: Writer = .fixed(&buffer);
    const size =
        try writeMark(&writer, &.{ .release = .init("6.1.0-53-amd64"), .architecture = .aarch64 });
    try testing.expectEqual(writer.end, size);
    // The kernel looks for the next archive at a multiple of four.
    try testing.expectEqual(0, size % 4);
    const found = wire.initramfs_mark.read(writer.buffered()).?;
    try testing.expectEqualStrings("6.1.0-53-amd64", found.release.slice());
    try testing.expectEqual(.aarch64, found.architecture);
}

test "a missing applet of a busybox is found" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const joined = try std.mem.join(arena.allocator(), "\x00", &applets);
    const whole = try std.fmt.allocPrint(arena.allocator(), "code\x00{s}\x00", .{joined});
    try testing.expectEqual(null, missingApplet(whole));
    std.mem.replaceScalar(u8, whole[std.mem.find(u8, whole, "udhcpc").?..][0..6], 'u', 'x');
    try testing.expectEqualStrings("udhcpc", missingApplet(whole).?);
}
