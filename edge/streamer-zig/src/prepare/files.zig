//! The files that prepare adds to a root, each with the reason that people see.

const std = @import("std");
const initramfs = @import("initramfs");
const checks = @import("checks.zig");
const archive = initramfs.archive;
const module_choice = initramfs.module_choice;

pub const File = struct {
    path: []const u8,
    mode: u32 = 0o644,
    content: []const u8,
    why: []const u8,
};

pub const folder = "usr/lib/bootfarm";
pub const program_path = folder ++ "/bootfarm-target";
pub const write_cache_path = "etc/bootfarm/write-cache";
/// The files and kernels that the initramfs was made for.
pub const stamp_path = "var/lib/bootfarm/initramfs";

pub const scripts = [_]File{
    .{
        .path = folder ++ "/init.sh",
        .mode = 0o755,
        .content = archive.init_script,
        .why = "first program of a boot from an edge",
    },
    .{
        .path = folder ++ "/udhcpc.sh",
        .mode = 0o755,
        .content = archive.udhcpc_script,
        .why = "gives the boot NIC its address",
    },
    .{
        .path = folder ++ "/adapt-root.sh",
        .mode = 0o755,
        .content = archive.adapt_root_script,
        .why = "at each boot from an edge, in RAM: keeps network managers off the boot NIC, and " ++
            "removes root and swap from fstab",
    },
    .{
        .path = "etc/initramfs-tools/hooks/bootfarm",
        .mode = 0o755,
        .content = hook,
        .why = "adds these to every initramfs that update-initramfs makes; without an edge's " ++
            "words on the kernel's command line the system boots as before",
    },
};

/// A change of this file requires a new initramfs.
pub fn isInInitramfs(file: File) bool {
    if (std.mem.eql(u8, file.path, program_path)) return true;
    for (scripts) |script| if (std.mem.eql(u8, file.path, script.path)) return true;
    return false;
}

/// Background jobs of a system that would fill the write cache with data that is lost at power-off.
const IdleUnit = struct { unit: []const u8, why: []const u8 };
const idle = [_]IdleUnit{
    .{ .unit = "apt-daily.timer", .why = "downloads package lists" },
    .{ .unit = "apt-daily-upgrade.timer", .why = "installs packages" },
    .{ .unit = "man-db.timer", .why = "rebuilds the index of manual pages" },
    .{ .unit = "plocate-updatedb.timer", .why = "rebuilds the index of file names" },
    .{ .unit = "mlocate-updatedb.timer", .why = "rebuilds the index of file names" },
    .{ .unit = "dpkg-db-backup.timer", .why = "copies the list of packages" },
    .{ .unit = "e2scrub_all.timer", .why = "checks disks that are missing" },
    .{ .unit = "e2scrub_reap.service", .why = "checks disks that are missing" },
    .{ .unit = "fstrim.timer", .why = "trims disks that are missing" },
    .{ .unit = "snapd.snap-repair.timer", .why = "downloads packages" },
    .{ .unit = "motd-news.timer", .why = "downloads news" },
    .{ .unit = "update-notifier-download.timer", .why = "downloads packages" },
};

const unit_folders = [_][]const u8{ "usr/lib/systemd/system/", "lib/systemd/system/" };
const idle_condition =
    \\# Written by `bootfarm-target prepare`: what this does is lost at power-off where the disk is streamed.
    \\[Unit]
    \\ConditionKernelCommandLine=!bootfarm.edge
    \\
;

/// One for each unit of `idle`; `unit_path` is where the unit is if the root has it.
pub const UnitOverride = struct { unit_paths: [unit_folders.len][]const u8, file: File };
pub const unit_overrides: [idle.len]UnitOverride = unit_overrides: {
    var all: [idle.len]UnitOverride = undefined;
    for (&all, idle) |*rest, entry| {
        for (&rest.unit_paths, unit_folders) |*path, unit_folder| path.* = unit_folder ++
            entry.unit;
        rest.file = .{
            .path = "etc/systemd/system/" ++ entry.unit ++ ".d/bootfarm.conf",
            .content = idle_condition,
            .why = "not needed for a boot from an edge: " ++ entry.unit ++ ", which " ++ entry.why,
        };
    }
    break :unit_overrides all;
};

/// Directories that `--undo` removes if they are empty.
pub const folders = [_][]const u8{ folder, "etc/bootfarm", "var/lib/bootfarm" };

/// initramfs-tools(7), "HOOK SCRIPTS". busybox's modprobe is left out: the initramfs has kmod's,
/// which reads compressed modules.
const hook = hook: {
    @setEvalBranchQuota(10_000);
    var applets: []const u8 = "";
    for (archive.applets) |applet| {
        if (!std.mem.eql(u8, applet, "modprobe")) applets = applets ++ " " ++ applet;
    }
    var modules: []const u8 = "";
    for (module_choice.required) |required| modules = modules ++ " " ++ required.name;
    for (module_choice.buses ++ module_choice.network_cards ++ module_choice.local_disks ++
        module_choice.file_systems) |name|
        modules = modules ++ " " ++ name;
    break :hook
    \\#!/bin/sh
    \\# Written by `bootfarm-target prepare`; `bootfarm-target prepare --undo` takes it back.
    \\# Puts what starts a machine from a Bootfarm edge into the system's initramfs, and in front of its init.
    \\[ "$1" = prereqs ] && exit 0
    \\. /usr/share/initramfs-tools/hook-functions
    \\
    ++ "\nmanual_add_modules" ++ modules ++
        \\
        \\
        \\copy_exec "$(command -v busybox)" /bin/busybox
        \\mkdir -p "$DESTDIR/bootfarm/bin"
        \\
    ++ "for applet in" ++ applets ++ "; do\n" ++
        \\  ln -s /bin/busybox "$DESTDIR/bootfarm/bin/$applet"
        \\done
        \\copy_exec /usr/lib/bootfarm/bootfarm-target /bin/bootfarm-target
        \\cp /usr/lib/bootfarm/udhcpc.sh /usr/lib/bootfarm/adapt-root.sh "$DESTDIR/etc/"
        \\mv "$DESTDIR/init" "$DESTDIR/init.system"
        \\cp /usr/lib/bootfarm/init.sh "$DESTDIR/init"
        \\
        \\# An archive in front names the kernel, so that an edge can check it before it serves the initramfs.
        \\mark=$(mktemp -d "${TMPDIR:-/var/tmp}/bootfarm-mark.XXXXXX")
        \\
    ++ "printf 'bootfarm-initramfs 1\\nrelease %s\\narchitecture " ++ @tagName(checks.machine) ++
        "\\n' \"$version\" >\"$mark/bootfarm-initramfs\"\n" ++
        \\if (cd "$mark" && echo bootfarm-initramfs | busybox cpio -o -H newc >mark.cpio 2>/dev/null); then
        \\  prepend_earlyinitramfs "$mark/mark.cpio"
        \\fi
        \\rm -r "$mark"
        \\
    ;
};

const testing = std.testing;

test "the hook asks for every driver and every program of busybox but modprobe" {
    for (module_choice.required) |required|
        try testing.expect(std.mem.find(u8, hook, required.name) != null);
    try testing.expect(std.mem.find(u8, hook, " r8169 ") != null);
    try testing.expect(std.mem.find(u8, hook, " udhcpc ") != null);
    try testing.expect(std.mem.find(u8, hook, " modprobe") == null);
    try testing.expect(std.mem.startsWith(u8, hook, "#!/bin/sh\n"));
}

test "every path is inside the root" {
    for (scripts) |file| try testing.expect(file.path[0] != '/');
    for (unit_overrides) |rest| try testing.expect(rest.file.path[0] != '/');
}
