//! Checks what a root needs to boot from an edge. Each missing item gives one sentence with a
//! remedy, before anything is changed.

const std = @import("std");
const builtin = @import("builtin");
const initramfs = @import("initramfs");
const RootDirectory = @import("root_directory.zig");
const Allocator = std.mem.Allocator;

const releases_max = 16;
const text_size_max = 4 << 20;
const program_size_max = 32 << 20;

/// The result of the check.
pub const System = struct {
    /// As os-release has it: `Debian GNU/Linux 12 (bookworm)`.
    name: []const u8,
    /// Kernels that can boot from an edge, the newest last.
    releases: []const []const u8,
    /// Kernels that cannot, each with its missing driver.
    unfit: []const UnfitKernel = &.{},

    pub const UnfitKernel = struct { release: []const u8, lacks: initramfs.module_choice.Required };
};

pub const Reason = union(enum) {
    not_debian: []const u8,
    other_machine: initramfs.elf.Machine,
    no_initramfs_tools,
    no_busybox,
    /// The missing program of busybox.
    busybox_lacks: []const u8,
    no_kernel,
    unfit_kernel: System.UnfitKernel,
    read_only,
    not_permitted,
    /// A required file of the root cannot be read.
    unreadable: []const u8,
    no_memory,
};

pub const Result = union(enum) { system: System, refused: Reason };

pub const machine: initramfs.elf.Machine = switch (builtin.cpu.arch) {
    .x86_64 => .x86_64,
    .aarch64 => .aarch64,
    else => .other,
};

pub fn look(root: RootDirectory, arena: Allocator) Result {
    return lookOrFail(root, arena) catch .{ .refused = .no_memory };
}

fn lookOrFail(root: RootDirectory, arena: Allocator) error{OutOfMemory}!Result {
    const release_text = try read(root, arena, "etc/os-release", text_size_max) orelse
        try read(root, arena, "usr/lib/os-release", text_size_max) orelse "";
    const name = fieldOf(release_text, "PRETTY_NAME") orelse "a system without /etc/os-release";
    if (!isDebian(release_text)) return refuse(.{ .not_debian = name });
    // Every Debian has it, and it is never a script.
    const dpkg = try read(root, arena, "usr/bin/dpkg", program_size_max) orelse
        return refuse(.{ .unreadable = "/usr/bin/dpkg" });
    const facts = initramfs.elf.facts(dpkg) catch return refuse(.{ .unreadable = "/usr/bin/dpkg" });
    if (facts.machine != machine) return refuse(.{ .other_machine = facts.machine });
    if (!root.exists("usr/sbin/update-initramfs")) return refuse(.no_initramfs_tools);
    const busybox = try read(root, arena, "usr/bin/busybox", program_size_max) orelse
        try read(root, arena, "bin/busybox", program_size_max) orelse return refuse(.no_busybox);
    if (initramfs.archive.missingApplet(busybox)) |applet|
        return refuse(.{ .busybox_lacks = applet });
    return lookForKernels(root, arena, name);
}

fn refuse(reason: Reason) Result {
    return .{ .refused = reason };
}

fn lookForKernels(
    root: RootDirectory,
    arena: Allocator,
    name: []const u8,
) error{OutOfMemory}!Result {
    const names = root.list(arena, "boot") catch |reason| switch (reason) {
        error.OutOfMemory => return error.OutOfMemory,
        else => return refuse(.no_kernel),
    };
    var releases: std.ArrayList([]const u8) = .empty;
    var unfit: std.ArrayList(System.UnfitKernel) = .empty;
    for (names) |file| {
        const release = std.mem.cutPrefix(u8, file, "vmlinuz-") orelse continue;
        if (releases.items.len + unfit.items.len == releases_max) break;
        // A kernel without modules was removed, or is a rescue image.
        const folder = try std.mem.concat(arena, u8, &.{ "lib/modules/", release });
        if (!root.exists(folder)) continue;
        if (try firstLacking(root, arena, folder)) |lacks|
            try unfit.append(arena, .{ .release = release, .lacks = lacks })
        else
            try releases.append(arena, release);
    }
    if (releases.items.len == 0) {
        if (unfit.items.len > 0) return refuse(.{ .unfit_kernel = unfit.items[0] });
        return refuse(.no_kernel);
    }
    std.sort.insertion([]const u8, releases.items, {}, isBefore);
    return .{ .system = .{ .name = name, .releases = releases.items, .unfit = unfit.items } };
}

fn isBefore(_: void, a: []const u8, b: []const u8) bool {
    return std.mem.order(u8, a, b) == .lt;
}

fn firstLacking(
    root: RootDirectory,
    arena: Allocator,
    folder: []const u8,
) error{OutOfMemory}!?initramfs.module_choice.Required {
    const lists = [_][]const u8{ "/modules.dep", "/modules.builtin" };
    var texts: [lists.len][]const u8 = undefined;
    for (&texts, lists) |*text, list|
        text.* = try read(
            root,
            arena,
            try std.mem.concat(arena, u8, &.{ folder, list }),
            text_size_max,
        ) orelse "";
    for (initramfs.module_choice.required) |required| {
        for (texts) |text| {
            if (hasModule(text, required.name)) break;
        } else return required;
    }
    return null;
}

/// `list` names one module a line at its start, as `kernel/drivers/block/nbd.ko`, perhaps with .xz,
/// .zst or .gz appended.
fn hasModule(list: []const u8, name: []const u8) bool {
    var lines = std.mem.tokenizeScalar(u8, list, '\n');
    while (lines.next()) |line| {
        const path = line[0 .. std.mem.findScalar(u8, line, ':') orelse line.len];
        const file = std.fs.path.basenamePosix(path);
        if (std.mem.startsWith(u8, file, name) and
            std.mem.startsWith(u8, file[name.len..], ".ko")) return true;
    }
    return false;
}

fn read(
    root: RootDirectory,
    arena: Allocator,
    path: []const u8,
    size_max: usize,
) error{OutOfMemory}!?[]const u8 {
    return root.read(arena, path, size_max) catch |reason| switch (reason) {
        error.OutOfMemory => error.OutOfMemory,
        else => null,
    };
}

/// os-release(5): `ID` and `ID_LIKE` are words, perhaps quoted.
fn isDebian(os_release: []const u8) bool {
    for ([_][]const u8{ "ID", "ID_LIKE" }) |field| {
        var words = std.mem.tokenizeScalar(u8, fieldOf(os_release, field) orelse continue, ' ');
        while (words.next()) |word| {
            if (std.mem.eql(u8, word, "debian") or std.mem.eql(u8, word, "ubuntu")) return true;
        }
    }
    return false;
}

fn fieldOf(os_release: []const u8, field: []const u8) ?[]const u8 {
    var lines = std.mem.tokenizeScalar(u8, os_release, '\n');
    while (lines.next()) |line| {
        const rest = std.mem.cutPrefix(u8, line, field) orelse continue;
        const value = std.mem.cutPrefix(u8, rest, "=") orelse continue;
        return std.mem.trim(u8, value, "\"' \r");
    }
    return null;
}

const testing = std.testing;

test "Debian and its derivatives are recognized by os-release" {
    try testing.expect(isDebian("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"));
    try testing.expect(isDebian("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
    try testing.expect(!isDebian("ID=fedora\nVARIANT_ID=debian\n"));
    try testing.expect(!isDebian(""));
}

test "a module is found as a file, compressed and built in, but not by the end of its name" {
    const list =
        "kernel/drivers/block/nbd.ko.xz: kernel/lib/a.ko\nkernel/fs/overlayfs/overlay.ko:\n";
    try testing.expect(hasModule(list, "nbd"));
    try testing.expect(hasModule(list, "overlay"));
    try testing.expect(!hasModule("kernel/drivers/block/xnbd.ko:\n", "nbd"));
    try testing.expect(!hasModule("kernel/drivers/block/nbdx.ko:\n", "nbd"));
    try testing.expect(!hasModule("kernel/x.ko: kernel/nbd.ko\n", "nbd"));
}

/// A root that passes every check.
const TestSystem = struct {
    t: RootDirectory.TestRoot,
    arena: std.heap.ArenaAllocator,

    fn init() !TestSystem {
        var system: TestSystem = .{ .t = try .init(), .arena = .init(testing.allocator) };
        const root = system.t.root;
        try root.write("etc/os-release", 0o644, "PRETTY_NAME=\"Debian 12\"\nID=debian\n");
        try root.write("usr/bin/dpkg", 0o755, &programOf(machine));
        try root.write("usr/sbin/update-initramfs", 0o755, "");
        const applets =
            try std.mem.join(system.arena.allocator(), "\x00", &initramfs.archive.applets);
        const busybox =
            try std.mem.concat(system.arena.allocator(), u8, &.{ "\x00", applets, "\x00" });
        try root.write("usr/bin/busybox", 0o755, busybox);
        try root.write("boot/vmlinuz-6.1.0", 0o644, "");
        try root.write(
            "lib/modules/6.1.0/modules.dep",
            0o644,
            "kernel/nbd.ko:\nkernel/af_packet.ko:\n",
        );
        try root.write("lib/modules/6.1.0/modules.builtin", 0o644, "kernel/overlay.ko\n");
        return system;
    }

    fn deinit(system: *TestSystem) void {
        system.t.deinit();
        system.arena.deinit();
    }

    fn refusal(system: *TestSystem) Reason {
        return look(system.t.root, system.arena.allocator()).refused;
    }
};

fn programOf(wanted: initramfs.elf.Machine) [64]u8 {
    var bytes: [64]u8 = @splat(0);
    @memcpy(bytes[0..4], "\x7fELF");
    bytes[4] = 2;
    bytes[5] = 1;
    bytes[18] = if (wanted == .x86_64) 62 else 183;
    return bytes;
}

test "a complete Debian root is accepted, with every kernel that fits" {
    var system: TestSystem = try .init();
    defer system.deinit();
    try system.t.root.write("boot/vmlinuz-5.0", 0o644, "");
    try system.t.root.write("lib/modules/5.0/modules.dep", 0o644, "");
    try system.t.root.write("boot/vmlinuz-removed", 0o644, "");
    const found = look(system.t.root, system.arena.allocator()).system;
    try testing.expectEqualStrings("Debian 12", found.name);
    try testing.expectEqual(1, found.releases.len);
    try testing.expectEqualStrings("6.1.0", found.releases[0]);
    try testing.expectEqual(1, found.unfit.len);
    try testing.expectEqualStrings("5.0", found.unfit[0].release);
}

test "each missing item has its own reason" {
    var system: TestSystem = try .init();
    defer system.deinit();
    const root = system.t.root;
    try root.write("lib/modules/6.1.0/modules.dep", 0o644, "kernel/af_packet.ko:\n");
    try testing.expectEqualStrings("nbd", system.refusal().unfit_kernel.lacks.name);
    try root.remove("boot/vmlinuz-6.1.0");
    try testing.expectEqual(.no_kernel, std.meta.activeTag(system.refusal()));
    try root.write("usr/bin/busybox", 0o755, "\x00awk\x00cat\x00");
    try testing.expectEqualStrings("cp", system.refusal().busybox_lacks);
    try root.remove("usr/bin/busybox");
    try testing.expectEqual(.no_busybox, std.meta.activeTag(system.refusal()));
    try root.remove("usr/sbin/update-initramfs");
    try testing.expectEqual(.no_initramfs_tools, std.meta.activeTag(system.refusal()));
    const other: initramfs.elf.Machine = if (machine == .x86_64) .aarch64 else .x86_64;
    try root.write("usr/bin/dpkg", 0o755, &programOf(other));
    try testing.expectEqual(other, system.refusal().other_machine);
    try root.write("etc/os-release", 0o644, "PRETTY_NAME=Fedora\nID=fedora\n");
    try testing.expectEqualStrings("Fedora", system.refusal().not_debian);
}
