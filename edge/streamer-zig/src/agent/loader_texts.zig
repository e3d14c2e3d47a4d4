//! Makes the configurations of GRUB and PXELINUX for the boot of the device that requests them by
//! TFTP. GRUB requests fixed names without a boot's handle: the boot is then that of the source
//! address.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const device_address = @import("device_address.zig");
const assert = std.debug.assert;

pub const text_size_max = 8192;

pub fn LoaderTexts(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);

        boots: *Boots,
        /// This edge's addresses as devices reach them.
        own: core.dhcp.network.Addresses,
        /// The peer has answered from its address. Before, anybody may have forged the request, and
        /// it changes nothing.
        is_confirmed: bool = true,
        /// The text that was written last answers a menu's choice: nobody is shown the menu again.
        is_promise: bool = false,
        /// The text that was to be written last has to wait for the boot's version.
        waits_for_version: bool = false,

        pub const size_max = text_size_max;
        const Buffer = [size_max]u8;
        const Loader = enum { grub, pxelinux };

        comptime {
            assert(core.loader.grub_config.size_max <= size_max);
            assert(core.loader.config_menu.size_max == size_max);
            assert(core.loader.pxelinux_config.size_max <= size_max);
        }

        /// Writes the text into `buffer` from its start and returns it; null: there is none of this
        /// name for this peer. Any packet may lead here: refusals are cheap, and a request is no
        /// sign that a boot continues.
        pub fn write(
            texts: *Self,
            question: *const core.tftp.Server.FileQuery,
            buffer: *Buffer,
        ) ?[]const u8 {
            assert(texts.is_confirmed);
            texts.is_confirmed = question.is_confirmed;
            texts.is_promise = false;
            texts.waits_for_version = false;
            defer texts.is_confirmed = true;
            // Most names are no configuration, and finding the boot is the expensive part.
            if (std.mem.find(u8, question.name, ".cfg") == null) return null;
            const ref = texts.boots.forPath(question.handle, question.peer.ip) orelse return null;
            const boot = texts.boots.get(ref) orelse return null;
            if (!device_address.mayBeDevice(texts.boots, boot, question.peer.ip)) return null;
            const mac = boot.identity.mac;
            if (core.loader.grub_config.isAskedAs(question.name, mac))
                return texts.menuOrStart(ref, .grub, .tftp, buffer);
            if (core.loader.pxelinux_config.isAskedAs(question.name, mac))
                return texts.menuOrStart(ref, .pxelinux, .tftp, buffer);
            // A choice has effects, so only a peer that knows the boot's handle may make it.
            if (question.handle == null) return null;
            const answer = core.loader.config_menu.parseName(question.name) orelse return null;
            texts.is_promise = true;
            return texts.take(ref, answer, .tftp, buffer);
        }

        /// Writes GRUB's configuration for HTTP; null for a name that is no configuration.
        pub fn writeGrubByHttp(
            texts: *Self,
            ref: Boots.Ref,
            name: []const u8,
            buffer: *Buffer,
        ) ?[]const u8 {
            assert(texts.is_confirmed);
            const boot = texts.boots.get(ref) orelse return null;
            if (core.loader.grub_config.isAskedAs(name, boot.identity.mac))
                return texts.menuOrStart(ref, .grub, .http, buffer);
            const answer = core.loader.config_menu.parseName(name) orelse return null;
            return texts.take(ref, answer, .http, buffer);
        }

        fn menuOrStart(
            texts: *Self,
            ref: Boots.Ref,
            loader: Loader,
            by: core.loader.grub_config.By,
            buffer: *Buffer,
        ) ?[]const u8 {
            const boot = texts.boots.get(ref) orelse return null;
            const menu =
                texts.boots.menuOf(boot) orelse return texts.start(ref, loader, by, buffer);
            assert(menu.entries().len > 0);
            const now_us = texts.boots.io.now();
            if (texts.is_confirmed) texts.boots.apply(ref, now_us, .{
                .menu_shown = .{ .timeout_ms = menu.menu.timeoutMs },
            });
            const options: core.loader.config_menu.Options = .{
                .menu = menu,
                .handle = .{ .value = boot.identity.handle },
                .http = texts.own.http(boot.facts.ip),
                .by = by,
            };
            return switch (loader) {
                .grub => core.loader.config_menu.writeGrub(&options, buffer),
                .pxelinux => core.loader.config_menu.writePxelinux(&options, buffer),
            };
        }

        /// Applies a menu choice; answers the menu again if it has changed since. A repeated
        /// request gets the same answer.
        fn take(
            texts: *Self,
            ref: Boots.Ref,
            answer: core.loader.menu.Answer,
            by: core.loader.grub_config.By,
            buffer: *Buffer,
        ) ?[]const u8 {
            const boot = texts.boots.get(ref) orelse return null;
            const loader = loaderOf(boot);
            if (texts.boots.menuOf(boot)) |menu| {
                const choice =
                    menu.choice(answer) orelse return texts.menuOrStart(ref, loader, by, buffer);
                texts.boots.choose(ref, texts.boots.io.now(), choice);
            }
            const outcome = boot.outcome orelse return texts.start(ref, loader, by, buffer);
            if (outcome != .local_disk) return null;
            const text = switch (loader) {
                .grub => core.loader.config_menu.grub_local_disk,
                .pxelinux => core.loader.config_menu.pxelinux_local_disk,
            };
            @memcpy(buffer[0..text.len], text);
            return buffer[0..text.len];
        }

        /// Returns the loader that requests a menu entry: PXELINUX runs only on BIOS machines.
        fn loaderOf(boot: *const core.boot.Boot) Loader {
            const arch: wire.dhcp.ClientArch =
                @fromBackingInt(boot.facts.client_arch orelse return .grub);
            return if (arch == .bios) .pxelinux else .grub;
        }

        fn start(
            texts: *Self,
            ref: Boots.Ref,
            loader: Loader,
            by: core.loader.grub_config.By,
            buffer: *Buffer,
        ) ?[]const u8 {
            const boots = texts.boots;
            const boot = boots.get(ref) orelse return null;
            texts.waits_for_version = boots.awaitsVersion(boot);
            if (texts.waits_for_version) return null;
            if (boots.blockerOf(boot)) |blocker|
                return texts.refuse(ref, loader, blocker.cause, blocker.text, buffer);
            const version = boots.versionOf(boot) orelse return null;
            assert(version.id.eql(boot.assignment.version_id));
            if (version.kernel == null) {
                const text: base.UntrustedText =
                    .init("the version has no kernel, and only iPXE starts its disk");
                return texts.refuse(ref, loader, .file_not_found, text, buffer);
            }
            const line: core.loader.kernel_line.KernelLine = .{
                .identity = boot.identity,
                .http = texts.own.http(boot.facts.ip),
                .stream = texts.own.stream(boot.facts.ip),
                .command_line = version.commandLine(),
                .local_disk = boot.assignment.local_disk,
                .tuning = boot.assignment.tuning,
                .clear = boots.clear and boot.assignment.tuning.protection != .sealed,
                .link = boots.policy.linkOf(boot.identity.id),
            };
            const has_initrd = version.initrd != null;
            return switch (loader) {
                .grub => core.loader.grub_config.write(
                    &.{ .line = line, .by = by, .has_initrd = has_initrd },
                    buffer[0..core.loader.grub_config.size_max],
                ),
                .pxelinux => core.loader.pxelinux_config.write(
                    &.{ .line = line, .has_initrd = has_initrd },
                    buffer[0..core.loader.pxelinux_config.size_max],
                ),
            };
        }

        /// The device shows the reason, and its boot fails with it.
        fn refuse(
            texts: *Self,
            ref: Boots.Ref,
            loader: Loader,
            cause: core.boot.phase.Cause,
            why: base.UntrustedText,
            buffer: *Buffer,
        ) []const u8 {
            const now_us = texts.boots.io.now();
            if (texts.is_confirmed) {
                texts.boots.apply(ref, now_us, .{ .loader_begin = .script });
                texts.boots.apply(ref, now_us, .{ .failed = .{ .cause = cause, .text = why } });
                assert(texts.boots.get(ref).?.isOver());
            }
            const link = if (texts.boots.get(ref)) |boot|
                texts.boots.policy.linkOf(boot.identity.id)
            else
                null;
            return switch (loader) {
                .grub => core.loader.grub_config.writeRefusal(
                    why.slice(),
                    link,
                    buffer[0..core.loader.grub_config.size_max],
                ),
                .pxelinux => core.loader.pxelinux_config.writeRefusal(
                    why.slice(),
                    link,
                    buffer[0..core.loader.pxelinux_config.size_max],
                ),
            };
        }
    };
}
