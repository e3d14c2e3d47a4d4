//! Decides whether a device can start the kernel and initramfs of its version, as far as the files
//! reveal. Unrecognized files pass: the device will find out.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const boot_phase = @import("../boot/phase.zig");

const ClientArch = wire.dhcp.ClientArch;

/// Why the device cannot boot, for the boot's report and for the device's console.
pub const BootBlocker = struct { cause: boot_phase.Cause, text: base.UntrustedText };

pub const Files = struct {
    kernel: wire.kernel_image.KernelImage,
    /// Null without an initramfs, and for one from elsewhere.
    made_for: ?wire.initramfs_mark.InitramfsMark = null,
};

/// `client_arch` is option 93 of the device's firmware, null if it sent none.
pub fn judge(files: *const Files, client_arch: ?ClientArch) ?BootBlocker {
    if (client_arch) |arch| if (blockerOfDevice(files, arch)) |blocker| return blocker;
    const mark = files.made_for orelse return null;
    if (files.kernel.architecture) |architecture| if (architecture != mark.architecture)
        return blockerOf(.kernel_mismatch, "kernel for {t}, initramfs for {t}", .{
            architecture, mark.architecture,
        });
    const release = files.kernel.release orelse return null;
    if (release.eql(&mark.release)) return null;
    return blockerOf(.kernel_mismatch, "kernel {s}, initramfs for {s}", .{
        release.slice(), mark.release.slice(),
    });
}

fn blockerOfDevice(files: *const Files, client_arch: ClientArch) ?BootBlocker {
    const architecture = files.kernel.architecture orelse return null;
    const is_x86 = architecture == .x86 or architecture == .x86_64;
    const is_taken, const machine = switch (client_arch) {
        // A 32-bit UEFI on a 64-bit processor accepts both kinds of kernels, and so does a BIOS.
        .bios => .{ is_x86, "x86 BIOS" },
        .uefi_x86, .uefi_x86_http => .{ is_x86, "32-bit x86 UEFI" },
        .uefi_x64, .uefi_x64_by_rfc4578, .uefi_x64_http => .{
            architecture == .x86_64,
            "x86-64 UEFI",
        },
        .uefi_arm64, .uefi_arm64_http => .{ architecture == .aarch64, "arm64 UEFI" },
        _ => return null,
    };
    if (is_taken) return null;
    return blockerOf(.kernel_architecture_mismatch, "kernel for {t}, machine with {s}", .{
        architecture, machine,
    });
}

/// Truncated if it is too long.
fn blockerOf(cause: boot_phase.Cause, comptime format: []const u8, arguments: anytype) BootBlocker {
    var buffer: [256]u8 = undefined;
    const text = std.mem.print(&buffer, format, arguments) catch unreachable;
    return .{ .cause = cause, .text = .init(text) };
}

const testing = std.testing;

fn filesOf(
    release: ?[]const u8,
    architecture: wire.kernel_image.Architecture,
    made_for: ?wire.initramfs_mark.InitramfsMark,
) Files {
    return .{
        .kernel = .{
            .format = .x86_boot,
            .architecture = architecture,
            .release = if (release) |text| .init(text) else null,
        },
        .made_for = made_for,
    };
}

test "an initramfs for another kernel is reported with both releases" {
    const mark: wire.initramfs_mark.InitramfsMark =
        .{ .release = .init("6.1.0-51-cloud-amd64"), .architecture = .x86_64 };
    const other = judge(&filesOf("6.1.0-53-cloud-amd64", .x86_64, mark), .bios).?;
    try testing.expectEqual(.kernel_mismatch, other.cause);
    try testing.expectEqualStrings(
        "kernel 6.1.0-53-cloud-amd64, initramfs for 6.1.0-51-cloud-amd64",
        other.text.slice(),
    );
    try testing.expectEqual(null, judge(&filesOf("6.1.0-51-cloud-amd64", .x86_64, mark), .bios));
    const foreign = judge(&filesOf(null, .aarch64, mark), null).?;
    try testing.expectEqual(.kernel_mismatch, foreign.cause);
    try testing.expectEqualStrings(
        "kernel for aarch64, initramfs for x86_64",
        foreign.text.slice(),
    );
    // Facts that are missing in the files are not judged.
    try testing.expectEqual(null, judge(&filesOf(null, .x86_64, mark), .bios));
    try testing.expectEqual(null, judge(&filesOf("6.1.0-53-cloud-amd64", .x86_64, null), null));
}

test "each client architecture accepts the kernels that run on it" {
    const rows = [_]struct { ClientArch, bool, bool, bool }{
        .{ .bios, true, true, false },
        .{ .uefi_x86, true, true, false },
        .{ .uefi_x86_http, true, true, false },
        .{ .uefi_x64, false, true, false },
        .{ .uefi_x64_by_rfc4578, false, true, false },
        .{ .uefi_x64_http, false, true, false },
        .{ .uefi_arm64, false, false, true },
        .{ .uefi_arm64_http, false, false, true },
        .{ @fromBackingInt(0x77), true, true, true },
    };
    for (rows) |row| {
        const arch, const x86, const x86_64, const aarch64 = row;
        try testing.expectEqual(x86, judge(&filesOf(null, .x86, null), arch) == null);
        try testing.expectEqual(x86_64, judge(&filesOf(null, .x86_64, null), arch) == null);
        try testing.expectEqual(aarch64, judge(&filesOf(null, .aarch64, null), arch) == null);
    }
    const blocker = judge(&filesOf(null, .aarch64, null), .uefi_x64).?;
    try testing.expectEqual(.kernel_architecture_mismatch, blocker.cause);
    try testing.expectEqualStrings(
        "kernel for aarch64, machine with x86-64 UEFI",
        blocker.text.slice(),
    );
}
