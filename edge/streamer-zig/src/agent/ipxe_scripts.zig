//! Chooses the iPXE script of a boot: its menu first if it has one, then what it starts, or why it
//! cannot start.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const http_response = @import("response.zig");

const Response = http_response.Response;
const Tag = http_response.Tag;
const Text = [http_response.text_size_max]u8;

comptime {
    std.debug.assert(core.loader.ipxe_script.size_max == http_response.text_size_max);
}

pub fn IpxeScripts(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);

        boots: *Boots,
        /// This edge's addresses as devices reach them.
        own: *const core.dhcp.network.Addresses,

        pub const ScriptRequest = struct { ref: Boots.Ref, query: []const u8, peer: base.Ip4 };

        /// Returns null for a boot that this edge no longer knows.
        pub fn answer(scripts: Self, asked: ScriptRequest, text: *Text) ?Response {
            const chosen = core.loader.menu.Answer.parse(asked.query);
            var response = scripts.answerTo(asked, chosen, text) orelse return null;
            // Nobody is shown the menu again.
            response.after_journal = chosen != null;
            return response;
        }

        fn answerTo(
            scripts: Self,
            asked: ScriptRequest,
            chosen: ?core.loader.menu.Answer,
            text: *Text,
        ) ?Response {
            const boot = scripts.boots.get(asked.ref) orelse return null;
            if (chosen != null) if (boot.outcome) |outcome| {
                // The answer was lost.
                if (outcome == .local_disk) return localDisk(asked.ref, text);
                // The choice took longer than the silence limit.
                const begun =
                    scripts.boots.forScript(scripts.boots.io.now(), boot.identity.mac, asked.peer);
                const next = (begun catch return tooMany(text)) orelse return null;
                return scripts.menuOrStart(next, chosen, text);
            };
            return scripts.menuOrStart(asked.ref, chosen, text);
        }

        /// The boot table is full. iPXE shows only the status; the sentence is for other clients.
        pub fn tooMany(text: *Text) Response {
            return .saying(
                503,
                "This edge has reached its limit of boots in progress: try again, register the device, or add another edge.",
                text,
            );
        }

        fn menuOrStart(
            scripts: Self,
            ref: Boots.Ref,
            chosen: ?core.loader.menu.Answer,
            text: *Text,
        ) ?Response {
            const boot = scripts.boots.get(ref) orelse return null;
            const menu = scripts.boots.menuOf(boot) orelse return scripts.start(ref, text);
            const known =
                chosen orelse return scripts.show(ref, menu, .{ .is_changed = false }, text);
            const choice = menu.choice(known) orelse
                return scripts.show(ref, menu, .{ .is_changed = true }, text);
            scripts.boots.choose(ref, scripts.boots.io.now(), choice);
            return switch (choice.start) {
                .local_disk => localDisk(ref, text),
                .version => scripts.start(ref, text),
            };
        }

        fn show(
            scripts: Self,
            ref: Boots.Ref,
            menu: core.loader.Menu,
            how: struct { is_changed: bool },
            text: *Text,
        ) ?Response {
            std.debug.assert(menu.entries().len > 0);
            const now_us = scripts.boots.io.now();
            scripts.boots.apply(ref, now_us, .{
                .menu_shown = .{ .timeout_ms = menu.menu.timeoutMs },
            });
            const boot = scripts.boots.get(ref) orelse return null;
            return scriptOf(core.loader.ipxe_menu.write(.{
                .menu = menu,
                .handle = .{ .value = boot.identity.handle },
                .http = scripts.own.http(boot.facts.ip),
                .is_changed = how.is_changed,
            }, text), ref);
        }

        fn localDisk(ref: Boots.Ref, text: *Text) Response {
            return scriptOf(core.loader.ipxe_menu.writeLocalDisk(text), ref);
        }

        fn start(scripts: Self, ref: Boots.Ref, text: *Text) ?Response {
            const boots = scripts.boots;
            const boot = boots.get(ref) orelse return null;
            if (boots.awaitsVersion(boot)) return .later;
            if (boots.blockerOf(boot)) |blocker| {
                const now_us = scripts.boots.io.now();
                boots.apply(ref, now_us, .{ .loader_begin = .script });
                // Anybody may have asked in the name of a device that has another boot.
                const is_hint = boot.stream_was_open or boot.is_unreported;
                boots.apply(ref, now_us, if (is_hint) .{
                    .suspected = .{ .cause = blocker.cause, .text = blocker.text },
                } else .{ .failed = .{ .cause = blocker.cause, .text = blocker.text } });
                std.debug.assert(boot.isOver() or is_hint);
                return scriptOf(core.loader.ipxe_script.writeRefusal(
                    blocker.text.slice(),
                    boots.policy.linkOf(boot.identity.id),
                    text,
                ), ref);
            }
            const version = boots.versionOf(boot) orelse return null;
            return scriptOf(core.loader.ipxe_script.write(.{
                .identity = boot.identity,
                .http = scripts.own.http(boot.facts.ip),
                .stream = scripts.own.stream(boot.facts.ip),
                .has_kernel = version.kernel != null,
                .has_initrd = version.kernel != null and version.initrd != null,
                .command_line = version.commandLine(),
                .local_disk = boot.assignment.local_disk,
                .tuning = boot.assignment.tuning,
                .clear = boots.clear and boot.assignment.tuning.protection != .sealed,
                .link = boots.policy.linkOf(boot.identity.id),
            }, text), ref);
        }

        fn scriptOf(text: []const u8, ref: Boots.Ref) Response {
            return .{
                .status = 200,
                .content_type = "text/plain",
                .body = .{ .text = text.len },
                .tag = .{ .boot = ref, .what = .script },
            };
        }
    };
}
