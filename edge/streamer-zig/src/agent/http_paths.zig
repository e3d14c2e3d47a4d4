//! Serves the paths of boot HTTP: scripts, kernels, disks and boot programs; applies downloads to
//! boots, and takes what a device reports (UPLINK.md). Called by the HTTP server of `Io`.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire");
const device_address = @import("device_address.zig");
const http_response = @import("response.zig");
const loading = @import("loader/loading.zig");
const mutants = @import("mutants.zig");
const assert = std.debug.assert;

const Response = http_response.Response;
const Tag = http_response.Tag;

pub fn HttpPaths(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);
        const LoaderTexts = @import("loader_texts.zig").LoaderTexts(Io);
        const IpxeScripts = @import("ipxe_scripts.zig").IpxeScripts(Io);

        boots: *Boots,
        /// This edge's addresses as devices reach them.
        own: core.dhcp.network.Addresses,

        const text_type = "text/plain";
        const not_found: Response = .{ .status = 404 };
        const no_content: Response = .{ .status = 204 };

        /// Answers a request.
        pub fn respond(
            paths: *Self,
            peer: base.Ip4,
            request: *const wire.http_request.Request,
            text: *[http_response.text_size_max]u8,
        ) Response {
            const question = std.mem.findScalar(u8, request.target, '?') orelse request.target.len;
            assert(question <= request.target.len);
            const path = std.mem.trimStart(u8, request.target[0..question], "/");
            const boot_path: core.boot.Path = .parse(path);
            const word = std.meta.stringToEnum(Word, boot_path.name);
            if (request.method == .post or word != null) {
                if (request.method == .post and word != null)
                    return paths.onWord(word.?, boot_path.handle, peer, request.body, text);
                const why =
                    "POST is allowed only for /ready and /failed, with or without a boot's handle.";
                var refusal: Response = .saying(405, why, text);
                refusal.allow = if (word != null) "POST" else "GET, HEAD";
                return refusal;
            }
            if (std.mem.eql(u8, path, "healthz")) return paths.health(text);
            if (std.mem.eql(u8, path, "boot.ipxe")) return textOf(
                core.loader.ipxe_script.writeEntrance(paths.own.http(peer), text),
                .{},
            );
            const query = request.target[@min(question + 1, request.target.len)..];
            if (std.mem.cutPrefix(u8, path, "m/")) |rest| {
                return paths.scriptOfAddress(.{ .path = rest, .query = query }, peer, text);
            }
            const ref = paths.boots.forPath(boot_path.handle, peer);
            if (ref) |known| if (isScript(boot_path.name))
                if (paths.refusalOfScript(known, peer, text)) |refusal| return refusal;
            if (boot_path.handle != null) if (ref) |known| {
                if (paths.awaitsVersion(known, boot_path.name)) return .later;
                if (std.mem.eql(u8, boot_path.name, "disk"))
                    if (paths.refusalOfDisk(known, peer, text)) |refusal| return refusal;
                paths.boots.learnPeer(known, peer);
                const asked: IpxeScripts.ScriptRequest =
                    .{ .ref = known, .query = query, .peer = peer };
                if (paths.fileOfBoot(asked, boot_path.name, text)) |response|
                    return paths.measured(response, boot_path.name);
            };
            if (ref) |known|
                if (paths.grubConfig(known, boot_path.name, text)) |response|
                    return paths.measured(response, boot_path.name);
            const boot = if (ref) |known| paths.boots.get(known) else null;
            const bytes = paths.boots.io.bootFiles().fileFor(boot, boot_path.name) orelse {
                if (boot_path.handle != null) if (ref) |known|
                    paths.missing(known, boot_path.name, peer);
                return not_found;
            };
            return paths.measured(.{
                .status = 200,
                .content_type = contentTypeOf(boot_path.name),
                .body = .{ .memory = bytes },
                .tag = .{ .boot = ref, .what = .nbp },
            }, boot_path.name);
        }

        /// Counts the answer as a transfer of its boot.
        fn measured(paths: *Self, response: Response, name: []const u8) Response {
            const ref = response.tag.boot orelse return response;
            if (response.waits_for_version or response.tag.what == .other) return response;
            var counted = response;
            counted.tag.file = loading.onRequest(paths.boots, .{
                .ref = ref,
                .at_us = paths.boots.io.now(),
                .protocol = .http,
                .name = name,
            });
            return counted;
        }

        /// Always 200: an edge with a problem of a disk serves.
        fn health(paths: *Self, text: *[http_response.text_size_max]u8) Response {
            const head = "degraded: ";
            var writer: std.Io.Writer = .fixed(text[head.len .. text.len - 1]);
            paths.boots.io.writeProblems(&writer) catch {};
            const size = writer.buffered().len;
            if (size == 0) return textOf(std.mem.print(text, "ok\n", .{}) catch unreachable, .{});
            text[0..head.len].* = head.*;
            text[head.len + size] = '\n';
            return textOf(text[0 .. head.len + size + 1], .{});
        }

        /// UEFI HTTP Boot chooses by the content type, or by the file name where there is none
        /// (UEFI specification, HTTP Boot; types as registered with IANA).
        fn contentTypeOf(name: []const u8) []const u8 {
            const types = [_]struct { []const u8, []const u8 }{
                .{ ".efi", "application/efi" },
                .{ ".iso", "application/vnd.efi-iso" },
                .{ ".img", "application/vnd.efi-img" },
            };
            for (types) |known| if (std.ascii.endsWithIgnoreCase(name, known[0])) return known[1];
            return "application/octet-stream";
        }

        const Word = enum { ready, failed };

        /// Handles `POST /ready` and `POST /failed`, alone or below a boot's handle.
        fn onWord(
            paths: *Self,
            word: Word,
            handle: ?core.boot.Handle,
            peer: base.Ip4,
            body: []const u8,
            text: *[http_response.text_size_max]u8,
        ) Response {
            const boots = paths.boots;
            const event: core.boot.Event = switch (word) {
                .ready => .{ .ready = .http },
                .failed => blk: {
                    const failure = core.boot.cause.failureOfBody(body) orelse
                        return .saying(
                            400,
                            "The body is a code of 1 to 12 characters, a space, and a sentence.",
                            text,
                        );
                    break :blk .{ .failed = .{ .cause = failure.cause, .text = failure.text } };
                },
            };
            const ref = if (handle) |known|
                boots.table.findByHandle(known.value) orelse
                    return .saying(404, "This edge has no boot with that handle.", text)
            else
                paths.onlyActiveByIp(peer) catch |err| return .saying(409, switch (err) {
                    error.None => "No boot of this address is in progress.",
                    error.Several => "Several boots of this address are in progress; " ++
                        "name one by its handle.",
                }, text);
            const boot = boots.get(ref).?;
            assert(boot.identity.handle != 0);
            // Who overheard the handle must not end the boot: its failure is a hint then, which
            // explains a boot that falls silent.
            const is_believed = mutants.has(.outcome_of_any_address);
            const is_hint = event == .failed and !is_believed and !boots.isAt(boot, peer);
            if (event == .ready and !is_believed and
                !device_address.mayBeDevice(boots, boot, peer))
                return paths.stranger(boot.identity.mac, peer, text);
            // Applies to running devices, too.
            if (!is_hint and event == .failed and event.failed.cause == .write_cache_lost)
                boots.onLocalDiskLost(ref, paths.boots.io.now());
            if (boot.outcome) |outcome| return answerOver(outcome, word, text);
            boots.learnPeer(ref, peer);
            boots.note(ref, paths.boots.io.now(), .from_device, .http(.http_request, .word));
            boots.note(ref, paths.boots.io.now(), .from_edge, .{
                .name = .http_answer,
                .number = 204,
            });
            boots.apply(ref, paths.boots.io.now(), if (is_hint) .{ .suspected = .{
                .cause = event.failed.cause,
                .text = event.failed.text,
                .is_hearsay = true,
            } } else event);
            return no_content;
        }

        fn onlyActiveByIp(paths: *const Self, peer: base.Ip4) error{ None, Several }!Boots.Ref {
            return paths.boots.anyReadyToEnd() orelse try paths.boots.table.onlyActiveByIp(peer);
        }

        /// Answers a device that reports on a boot that is over.
        fn answerOver(
            outcome: core.boot.phase.OutcomeKind,
            word: Word,
            text: *[http_response.text_size_max]u8,
        ) Response {
            const is_known = switch (outcome) {
                .ready => word == .ready,
                .failed => word == .failed,
                .silent, .local_disk, .superseded => false,
            };
            if (is_known) return no_content;
            return .saying(409, switch (outcome) {
                .ready => "This boot is over: it became ready.",
                .failed => "This boot is over: it failed.",
                .silent => "This boot is over: it was silent for too long.",
                .local_disk => "This boot is over: the device was sent to its own disk.",
                .superseded => "This boot is over: its device has restarted.",
            }, text);
        }

        fn textOf(text: []const u8, tag: Tag) Response {
            return .{
                .status = 200,
                .content_type = text_type,
                .body = .{ .text = text.len },
                .tag = tag,
            };
        }

        /// Answers `m/<mac>/boot.ipxe`: the network's own DHCP server names this edge, or the
        /// device starts from a boot medium.
        fn scriptOfAddress(
            paths: *Self,
            asked: struct { path: []const u8, query: []const u8 },
            peer: base.Ip4,
            text: *[http_response.text_size_max]u8,
        ) Response {
            const mac_text, const name = std.mem.cutScalar(u8, asked.path, '/') orelse
                return not_found;
            if (!std.mem.eql(u8, name, "boot.ipxe")) return not_found;
            const mac = base.Mac.parse(mac_text) catch return not_found;
            if (!mac.isDevice()) return not_found;
            const query = core.loader.MediaQuery.parse(asked.query);
            const is_proven = switch (device_address.judge(paths.boots, peer, mac)) {
                .proven => true,
                .trusted => false,
                .unknown, .another => {
                    paths.boots.ignored.add(.device_unconfirmed);
                    return paths.stranger(mac, peer, text);
                },
            };
            const now_us = paths.boots.io.now();
            if (paths.pointElsewhere(mac, mac_text, asked.query, peer, text)) |script|
                return script;
            // Where the network is trusted, devices may share an address.
            const from = if (is_proven) peer else null;
            if (!paths.boots.mayBegin(now_us, mac, from)) return IpxeScripts.tooMany(text);
            const begun =
                paths.boots.forScript(now_us, mac, peer) catch return IpxeScripts.tooMany(text);
            const ref = begun orelse {
                paths.boots.discoverByHttp(now_us, mac, peer, query);
                return not_found;
            };
            assert(paths.boots.get(ref) != null);
            if (query) |known| if (paths.boots.get(ref)) |boot| known.tell(&boot.facts);
            const response =
                paths.scripts().answer(.{ .ref = ref, .query = "", .peer = peer }, text) orelse
                return not_found;
            return paths.measured(response, name);
        }

        /// Another edge has the device's version, and this one lacks it: the loader gets its script
        /// there. If it cannot reach that edge, the boot begins here and tells why it fails.
        fn pointElsewhere(
            paths: *Self,
            mac: base.Mac,
            /// As it stands in the path.
            mac_text: []const u8,
            query: []const u8,
            peer: base.Ip4,
            text: *[http_response.text_size_max]u8,
        ) ?Response {
            const boots = paths.boots;
            if (mutants.has(.answer_without_version)) return null;
            if (std.mem.endsWith(u8, query, stay_here)) return null;
            const asked = boots.askedOf(mac, boots.network);
            const index = boots.peers.otherHolderOf(boots.io.now(), asked) orelse return null;
            const there = boots.peers.httpOf(index) orelse return null;
            const is_plain = for (query) |byte| {
                if (!std.ascii.isAlphanumeric(byte) and
                    std.mem.findScalar(u8, "=&-", byte) == null) break false;
            } else query.len <= query_size_max;
            const kept = if (is_plain) query else "";
            const joint = if (kept.len > 0) "&" else "";
            return textOf(std.mem.print(
                text,
                "#!ipxe\nchain http://{f}/m/{s}/boot.ipxe?{s}{s}" ++ stay_here ++
                    " || chain http://{f}/m/{s}/boot.ipxe?{s}{s}" ++ stay_here ++ "\n",
                .{ there, mac_text, kept, joint, paths.own.http(peer), mac_text, kept, joint },
            ) catch unreachable, .{});
        }

        /// Ends a query whose device was sent from another edge, or came back.
        const stay_here = "here=1";
        /// Longer than that of a boot medium.
        const query_size_max = 256;

        fn isScript(name: []const u8) bool {
            return std.mem.eql(u8, name, "boot.ipxe") or std.mem.find(u8, name, ".cfg") != null;
        }

        /// Returns whether the name is that of a file of the boot's version, which is being opened.
        fn awaitsVersion(paths: *Self, ref: Boots.Ref, name: []const u8) bool {
            const own = [_][]const u8{ "kernel", "initrd", "disk" };
            const boot = paths.boots.get(ref) orelse return false;
            for (own) |file| if (std.mem.eql(u8, file, name))
                return paths.boots.awaitsVersion(boot);
            return false;
        }

        /// A boot's script and menus have its token. Null: no objection.
        fn refusalOfScript(
            paths: *Self,
            ref: Boots.Ref,
            peer: base.Ip4,
            text: *[http_response.text_size_max]u8,
        ) ?Response {
            const boot = paths.boots.get(ref) orelse return null;
            assert(boot.identity.mac.isDevice());
            if (device_address.mayBeDevice(paths.boots, boot, peer)) return null;
            return paths.stranger(boot.identity.mac, peer, text);
        }

        fn stranger(
            paths: *Self,
            mac: base.Mac,
            peer: base.Ip4,
            text: *[http_response.text_size_max]u8,
        ) Response {
            var buffer: [512]u8 = undefined;
            const sentence = switch (device_address.judge(paths.boots, peer, mac)) {
                .another => std.mem.print(
                    &buffer,
                    "This is only for the device {f}, and {f} has another MAC address.",
                    .{ mac, peer },
                ),
                else => std.mem.print(
                    &buffer,
                    "This is only for the device {f}, and nothing shows that {f} is it: neither a" ++
                        " lease of this edge nor its neighbour table. If {f} is behind a router," ++
                        " start the edge with its network in --trust-mac-from.",
                    .{ mac, peer, peer },
                ),
            } catch unreachable;
            return .saying(403, sentence, text);
        }

        /// A disk is read by HTTP, in clear text, only where nothing else can read it: by the
        /// boot's own firmware, of a version without a kernel. Null: no objection.
        fn refusalOfDisk(
            paths: *Self,
            ref: Boots.Ref,
            peer: base.Ip4,
            text: *[http_response.text_size_max]u8,
        ) ?Response {
            const boot = paths.boots.get(ref) orelse return null;
            const version = paths.boots.versionOf(boot) orelse return null;
            assert(version.disk.size() > 0);
            if (version.kernel != null) return .saying(
                404,
                "This version has a kernel: its disk is read by the stream, not by HTTP.",
                text,
            );
            if (!paths.boots.isAt(boot, peer)) return .saying(
                403,
                "This disk is served only to the address of the device that boots it.",
                text,
            );
            // A system without a driver of its own reads by its firmware as long as it runs:
            // silence or a report does not end that, the next boot does.
            return if (boot.hasSuccessor()) answerOver(.superseded, .failed, text) else null;
        }

        /// Returns null for a name that is none of the boot's own files.
        fn fileOfBoot(
            paths: *Self,
            asked: IpxeScripts.ScriptRequest,
            name: []const u8,
            text: *[http_response.text_size_max]u8,
        ) ?Response {
            if (std.mem.eql(u8, name, "boot.ipxe")) return paths.scripts().answer(asked, text);
            if (std.mem.eql(u8, name, core.loader.start_file.name)) {
                const bytes = core.loader.start_file.bytes;
                @memcpy(text[0..bytes.len], bytes);
                return textOf(text[0..bytes.len], .{ .boot = asked.ref, .what = .start });
            }
            const what: Tag.What = if (std.mem.eql(u8, name, "kernel"))
                .kernel
            else if (std.mem.eql(u8, name, "initrd"))
                .initrd
            else if (std.mem.eql(u8, name, "disk")) .disk else return null;
            const boot = paths.boots.get(asked.ref) orelse return null;
            const version = paths.boots.versionOf(boot) orelse return null;
            assert(version.disk.size() > 0);
            const tag: Tag = .{ .boot = asked.ref, .what = what };
            const body: http_response.Body = switch (what) {
                .kernel => .ofFile(version.kernel orelse return null),
                .initrd => .ofFile(version.initrd orelse return null),
                .disk => if (version.disk.plainFile()) |file|
                    .ofFile(file)
                else
                    .{ .disk = .{ .version_id = version.id, .size = version.disk.size() } },
                else => unreachable,
            };
            return .{ .status = 200, .body = body, .tag = tag };
        }

        /// Answers a GRUB that reads files by HTTP; null for a name that is no configuration.
        fn grubConfig(
            paths: *Self,
            ref: Boots.Ref,
            name: []const u8,
            text: *[http_response.text_size_max]u8,
        ) ?Response {
            if (std.mem.find(u8, name, ".cfg") == null) return null;
            var texts: LoaderTexts = .{ .boots = paths.boots, .own = paths.own };
            var buffer: [LoaderTexts.size_max]u8 = undefined;
            const config = texts.writeGrubByHttp(ref, name, &buffer) orelse
                return if (texts.waits_for_version) .later else null;
            if (config.len > text.len)
                return .saying(
                    500,
                    "The kernel's command line is too long for GRUB by HTTP.",
                    text,
                );
            assert(config.len <= text.len);
            @memcpy(text[0..config.len], config);
            var response = textOf(text[0..config.len], .{ .boot = ref, .what = .script });
            response.after_journal = core.loader.config_menu.parseName(name) != null;
            return response;
        }

        fn scripts(paths: *const Self) IpxeScripts {
            return .{ .boots = paths.boots, .own = &paths.own };
        }

        /// Loaders probe for files that need not exist, so a missing one is only suspected, except
        /// for the boot's own files.
        fn missing(paths: *Self, ref: Boots.Ref, name: []const u8, peer: base.Ip4) void {
            const asked: core.boot.packets.Packet = .http(.http_request, .other);
            paths.boots.note(ref, paths.boots.io.now(), .from_device, asked);
            paths.boots.note(ref, paths.boots.io.now(), .from_edge, .{
                .name = .http_answer,
                .number = 404,
            });
            const boot = paths.boots.get(ref) orelse return;
            const own = [_][]const u8{ "boot.ipxe", "kernel", "initrd", "disk" };
            const now_us = paths.boots.io.now();
            loading.onMissing(
                paths.boots,
                .{ .ref = ref, .at_us = now_us, .protocol = .http, .name = name },
            );
            const is_device = !boot.stream_was_open and paths.boots.isAt(boot, peer);
            if (is_device) for (own) |candidate| if (std.mem.eql(
                u8,
                candidate,
                name,
            )) {
                paths.boots.apply(
                    ref,
                    now_us,
                    .{ .failed = .{ .cause = .file_not_found, .text = .init(name) } },
                );
                return;
            };
            paths.boots.apply(
                ref,
                now_us,
                .{ .suspected = .{ .cause = .file_not_found, .text = .init(name) } },
            );
        }

        fn httpFile(what: Tag.What) core.boot.packets.HttpFile {
            return switch (what) {
                .other => .other,
                .nbp => .program,
                .script => .script,
                .kernel => .kernel,
                .initrd => .initrd,
                .disk => .disk,
                .start => .start,
            };
        }

        /// Applies the progress of an answer to its boot.
        pub fn progress(paths: *Self, tag: Tag, step: http_response.Progress) void {
            const ref = tag.boot orelse return;
            const boots = paths.boots;
            const now_us = step.at_us;
            const file = httpFile(tag.what);
            if (step.begins) boots.note(ref, now_us, .from_device, .http(.http_request, file));
            if (step.traffic.bytes_out > 0)
                boots.note(ref, now_us, .from_edge, .http(.http_bytes, file));
            const whole = step.finished and step.body_size > 0;
            loading.onProgress(boots, ref, tag.file, now_us, .{
                .bytes = step.traffic.bytes_out,
                .retransmitted = step.traffic.retries,
                .outcome = if (whole) .done else null,
            });
            switch (tag.what) {
                .other => {},
                .nbp => {
                    if (step.begins) boots.apply(ref, now_us, .nbp_begin);
                    boots.apply(ref, now_us, .{ .nbp_traffic = step.traffic });
                    if (whole) boots.apply(ref, now_us, .nbp_end);
                },
                .script, .kernel, .initrd, .start => {
                    const loaded: core.boot.LoaderFile = switch (tag.what) {
                        .script => .script,
                        .kernel => .kernel,
                        .initrd => .initrd,
                        .start => .start,
                        else => unreachable,
                    };
                    if (step.begins) boots.apply(ref, now_us, .{ .loader_begin = loaded });
                    boots.apply(ref, now_us, .{ .loader_traffic = step.traffic });
                    if (whole) boots.apply(ref, now_us, .{ .loader_end = loaded });
                },
                .disk => {
                    if (step.begins and step.body_size > 0)
                        boots.apply(ref, now_us, .{ .stage1_read = .{ .size = step.body_size } });
                    boots.apply(ref, now_us, .{ .stage1_traffic = step.traffic });
                },
            }
        }
    };
}
