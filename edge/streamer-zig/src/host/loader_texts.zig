//! The configurations that loaders ask for by TFTP: GRUB's and PXELINUX's, made for the boot that
//! the asker is in. GRUB asks by names of its own, without a boot's handle: the boot is then the
//! one of the asker's address.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("sys.zig");
const Boots = @import("boots.zig").Boots;
const published = @import("published.zig");
const assert = std.debug.assert;

pub const LoaderTexts = struct {
    boots: *Boots,
    /// As devices reach this edge.
    own: core.dhcp_network.Addresses,

    const Buffer = [published.Published.text_size_max]u8;
    const Loader = enum { grub, pxelinux };

    comptime {
        assert(core.grub_config.size_max <= published.Published.text_size_max);
        assert(core.pxelinux_config.size_max <= published.Published.text_size_max);
    }

    /// `texts` must stay where it is.
    pub fn maker(texts: *LoaderTexts) published.TextMaker {
        return .{ .context = texts, .write = write };
    }

    fn write(
        context: *anyopaque,
        question: *const published.Question,
        buffer: *Buffer,
    ) ?[]const u8 {
        const texts: *LoaderTexts = @ptrCast(@alignCast(context));
        // Most names are of no configuration, and looking for the boot is the dear part.
        if (std.mem.find(u8, question.name, ".cfg") == null) return null;
        const ref = texts.boots.forPath(question.handle, question.peer.ip) orelse return null;
        const boot = texts.boots.get(ref) orelse return null;
        const mac = boot.identity.mac;
        if (core.grub_config.isAskedAs(question.name, mac))
            return texts.writeFor(ref, .grub, .tftp, buffer);
        if (core.pxelinux_config.isAskedAs(question.name, mac))
            return texts.writeFor(ref, .pxelinux, .tftp, buffer);
        return null;
    }

    /// GRUB's, for one that reads files by HTTP; null where the boot is not known any more.
    pub fn writeGrubByHttp(texts: *LoaderTexts, ref: Boots.Ref, buffer: *Buffer) ?[]const u8 {
        return texts.writeFor(ref, .grub, .http, buffer);
    }

    fn writeFor(
        texts: *LoaderTexts,
        ref: Boots.Ref,
        loader: Loader,
        by: @FieldType(core.grub_config.Options, "by"),
        buffer: *Buffer,
    ) ?[]const u8 {
        const boots = texts.boots;
        const boot = boots.get(ref) orelse return null;
        if (boots.obstacleOf(boot)) |obstacle|
            return texts.refuse(ref, loader, obstacle.cause, obstacle.text, buffer);
        const version = boots.versionOf(boot) orelse return null;
        if (version.kernel == null) {
            const text: base.UntrustedText = .init("the version has no kernel, and only iPXE starts its disk");
            return texts.refuse(ref, loader, .file_not_found, text, buffer);
        }
        const line: core.kernel_line.KernelLine = .{
            .identity = boot.identity,
            .http = texts.own.http(boot.facts.ip),
            .stream = texts.own.stream(boot.facts.ip),
            .command_line = version.commandLine(),
        };
        const has_initrd = version.initrd != null;
        return switch (loader) {
            .grub => core.grub_config.write(
                &.{ .line = line, .by = by, .has_initrd = has_initrd },
                buffer[0..core.grub_config.size_max],
            ),
            .pxelinux => core.pxelinux_config.write(
                &.{ .line = line, .has_initrd = has_initrd },
                buffer[0..core.pxelinux_config.size_max],
            ),
        };
    }

    /// The device shows the reason, and its boot has failed with it.
    fn refuse(
        texts: *LoaderTexts,
        ref: Boots.Ref,
        loader: Loader,
        cause: core.boot_phase.Cause,
        why: base.UntrustedText,
        buffer: *Buffer,
    ) []const u8 {
        const now_us = sys.monotonicUs();
        texts.boots.apply(ref, now_us, .{ .loader_begin = .script });
        texts.boots.apply(ref, now_us, .{ .failed = .{ .cause = cause, .text = why } });
        return switch (loader) {
            .grub => core.grub_config.writeRefusal(why.slice(), buffer[0..core.grub_config.size_max]),
            .pxelinux => core.pxelinux_config.writeRefusal(
                why.slice(),
                buffer[0..core.pxelinux_config.size_max],
            ),
        };
    }
};
