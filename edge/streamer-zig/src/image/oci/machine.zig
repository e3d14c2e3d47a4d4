//! What makes a machine of a container image: an init and a kernel, which have to be in it, and
//! mount points, which are added. A container runtime brings some of it by itself.

const std = @import("std");
const fault_module = @import("fault.zig");
const FileTree = @import("../ext4/file_tree.zig");
const Fault = fault_module.Fault;

/// In the order in which our initramfs looks for them.
const inits = [_][]const u8{
    "/sbin/init", "/lib/systemd/systemd", "/usr/lib/systemd/systemd", "/bin/init",
};
const mount_points = [_]struct { []const u8, u16 }{
    .{ "dev", 0o755 }, .{ "proc", 0o555 }, .{ "run", 0o755 }, .{ "sys", 0o555 }, .{ "tmp", 0o1777 },
};
/// Files by which systemd takes a machine for a container.
const marks = [_][2][]const u8{ .{ "/", ".dockerenv" }, .{ "/run", ".containerenv" } };

pub const Needs = struct { init: bool = true, kernel: bool = true };

pub fn check(tree: *FileTree, needs: Needs, mtime: i64) Fault!void {
    if (needs.init) {
        for (inits) |path| {
            const found = try tree.lookUp(path) orelse continue;
            if (tree.at(found).kind == .file) break;
        } else return error.InitMissing;
    }
    try nameKernels(tree);
    if (needs.kernel and !try hasKernel(tree)) return error.KernelMissing;
    for (mount_points) |point| {
        const name, const mode = point;
        if (tree.find(FileTree.root, name) != null) continue;
        const made = try tree.add(.{ .kind = .directory, .mode = mode, .mtime = mtime });
        try tree.put(FileTree.root, name, .{ .inode = made, .layer = 0 });
    }
    for (marks) |mark| {
        const directory = tree.walk(mark[0], .missing) catch continue;
        tree.remove(directory, mark[1]);
    }
}

fn hasKernel(tree: *FileTree) Fault!bool {
    const boot = tree.walk("/boot", .missing) catch |err| switch (err) {
        error.Missing, error.NotADirectory, error.LinkCycle => return false,
        else => |other| return other,
    };
    for (tree.at(boot).children.keys()) |name|
        for ([_][]const u8{ "vmlinuz", "vmlinux", "Image" }) |stem|
            if (std.mem.startsWith(u8, name, stem)) return true;
    return false;
}

/// Fedora's images for machines have the kernel beside its modules alone: it gets a name in /boot,
/// where kernels are looked for.
fn nameKernels(tree: *FileTree) Fault!void {
    if (try hasKernel(tree)) return;
    const modules = try tree.lookUp("/lib/modules") orelse
        try tree.lookUp("/usr/lib/modules") orelse return;
    if (tree.at(modules).kind != .directory) return;
    // The children move when /boot is made in their directory.
    for (try tree.arena.dupe([]const u8, tree.at(modules).children.keys())) |release| {
        const child = tree.find(modules, release) orelse continue;
        if (tree.at(child.inode).kind != .directory) continue;
        const kernel = tree.find(child.inode, "vmlinuz") orelse continue;
        if (tree.at(kernel.inode).kind != .file) continue;
        const boot = tree.walk("/boot", .{ .make = .{ .layer = 0, .mtime = 0 } }) catch |err|
            switch (err) {
                error.NotADirectory, error.LinkCycle => return,
                else => |other| return other,
            };
        const name = try std.mem.concat(tree.arena, u8, &.{ "vmlinuz-", release });
        if (name.len > FileTree.name_size_max) continue;
        try tree.put(boot, name, kernel);
    }
}
