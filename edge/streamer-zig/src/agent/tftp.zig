//! Applies TFTP packets to boots: which boot a transfer belongs to, what it counts, what its
//! failure suggests. Packets come from the socket of `Io`, which sends packets, and reads and sends
//! blocks. A transfer is identified by its peer's endpoint.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const wire = @import("wire").tftp;
const catalogue_module = @import("catalogue.zig");
const loading = @import("loader/loading.zig");
const assert = std.debug.assert;

const TftpServer = core.tftp.Server;
const What = catalogue_module.What;
const Traffic = core.boot.phase.Traffic;

/// Limits how often requests without a boot's handle are looked up by address, because that scans
/// every boot; a peer that answers is always looked up.
const lookups_per_s = 1000;
/// An Ethernet packet has no more bytes of a file.
const blksize_max = 1468;

pub fn Tftp(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Boots = @import("boots.zig").Boots(Io);
        const Catalogue = catalogue_module.Catalogue(Io);

        server: TftpServer,
        boots: *Boots,
        catalogue: *Catalogue,
        /// The boot that a transfer belongs to, by its slot.
        owners: []?Owner,
        lookups_left: u32 = lookups_per_s,
        lookups_until_us: u64 = 0,
        reply: TftpServer.ReplyBuffer = undefined,
        /// Bytes of answers whose boot is known, since the start.
        sent_bytes: u64 = 0,

        /// The boot of a transfer, and what it downloads.
        const Owner = struct {
            ref: Boots.Ref,
            what: What,
            /// Of the boot's transfers.
            file: u8 = core.boot.Transfers.none,
            /// Acknowledgements that the peer repeated.
            repeated_acks: u16 = 0,
            /// How often its first blocks went out.
            first_sends: u16 = 0,
        };

        /// A peer that repeats acknowledgements while its first large blocks are retransmitted
        /// receives only small packets.
        const first_sends_suspicious = 4;
        const repeated_acks_suspicious = 2;

        pub fn init(
            gpa: std.mem.Allocator,
            server: TftpServer,
            boots: *Boots,
            catalogue: *Catalogue,
        ) error{OutOfMemory}!Self {
            assert(server.options.blksize_max <= blksize_max);
            const owners = try gpa.alloc(?Owner, server.sessions.len);
            @memset(owners, null);
            return .{ .server = server, .boots = boots, .catalogue = catalogue, .owners = owners };
        }

        pub fn deinit(port: *Self, gpa: std.mem.Allocator) void {
            port.server.deinit(gpa);
            gpa.free(port.owners);
            port.* = undefined;
        }

        /// Handles a datagram that arrived at `at_us`.
        pub fn receive(
            port: *Self,
            from: base.Endpoint,
            bytes: []const u8,
            at_us: u64,
            now_us: u64,
        ) void {
            assert(port.owners.len == port.server.sessions.len);
            const step = port.server.receive(now_us, from, bytes, &port.reply);
            if (step.ignored == .tftp_stale_ack) port.onRepeatedAck(from);
            port.act(&step, bytes, .{ .now_us = now_us, .at_us = at_us });
        }

        /// Aborts a transfer whose file cannot be read, and notifies the peer.
        pub fn abort(port: *Self, peer: base.Endpoint, now_us: u64) void {
            const step = port.server.abort(peer, &port.reply);
            port.act(&step, "", .{ .now_us = now_us, .at_us = now_us });
        }

        /// Retransmits what was not acknowledged in time.
        pub fn tick(port: *Self, now_us: u64) void {
            assert(port.server.session_count <= port.server.sessions.len);
            assert(port.owners.len == port.server.sessions.len);
            // Each step ends something or moves one deadline.
            for (0..port.server.sessions.len + port.server.requests.slots.len) |_| {
                const step = port.server.tick(now_us) orelse return;
                port.act(&step, "", .{ .now_us = now_us, .at_us = now_us });
            }
        }

        /// The loop's time, and the arrival of the datagram that led to a step.
        const Times = struct { now_us: u64, at_us: u64 };

        /// `datagram` led to the step; empty: a deadline did.
        fn act(port: *Self, step: *const TftpServer.Step, datagram: []const u8, times: Times) void {
            const now_us = times.now_us;
            for (step.events.constSlice()) |*event| port.tell(event, datagram, times.at_us);
            switch (step.send) {
                .nothing => {},
                .packet => |packet| {
                    port.countPacket(step, packet.bytes, now_us);
                    port.boots.io.send(.tftp, packet.to, packet.bytes);
                },
                .blocks => |*blocks| {
                    assert(blocks.count > 0);
                    const is_transfer = blocks.slot != TftpServer.Transfer.no_slot;
                    if (is_transfer and datagram.len > 0) port.boots.io.onTftpAck(times.at_us);
                    if (port.catalogue.isPromise(blocks.source))
                        port.sendPromise(blocks)
                    else
                        port.boots.io.sendBlocks(blocks, now_us);
                    // Counters change no phase: the waiting peer gets its blocks first.
                    port.countBlocks(step, blocks, datagram, now_us);
                },
            }
            for (step.released.constSlice()) |source| port.catalogue.close(source);
        }

        /// Sends blocks of a text that is made of what the journal was given last.
        fn sendPromise(port: *Self, blocks: *const TftpServer.Blocks) void {
            const text = port.catalogue.memory(blocks.source).?;
            var packet: [wire.data_header_size + blksize_max]u8 = undefined;
            var iterator = blocks.iterate();
            while (iterator.next()) |block| {
                const size = wire.data_header_size + @as(usize, block.size);
                assert(size <= packet.len);
                @memcpy(packet[0..wire.data_header_size], &block.header);
                @memcpy(
                    packet[wire.data_header_size..size],
                    text[@intCast(block.offset)..][0..block.size],
                );
                port.boots.io.sendAfterJournal(.written, .tftp, blocks.to, packet[0..size]);
            }
        }

        fn tell(
            port: *Self,
            event: *const TftpServer.Event,
            datagram: []const u8,
            now_us: u64,
        ) void {
            switch (event.*) {
                .requested => |*transfer| {
                    const ref =
                        port.lookUp(transfer.handle, transfer.peer.ip, now_us) orelse return;
                    const what = port.catalogue.what(transfer.file.source);
                    port.begin(
                        .{ .ref = ref, .what = what },
                        transfer.peer.ip,
                        datagram.len,
                        now_us,
                    );
                },
                .started => |*transfer| {
                    const ref = port.boots.forPath(transfer.handle, transfer.peer.ip) orelse return;
                    assert(transfer.slot < port.owners.len);
                    const name = port.server.sessions[transfer.slot].name();
                    const owner: Owner = .{
                        .ref = ref,
                        .what = port.catalogue.what(transfer.file.source),
                        .file = loading.onRequest(port.boots, .{
                            .ref = ref,
                            .at_us = now_us,
                            .protocol = .tftp,
                            .name = name,
                        }),
                    };
                    port.owners[transfer.slot] = owner;
                    port.begin(owner, transfer.peer.ip, datagram.len, now_us);
                    port.recordPacket(ref, datagram, now_us);
                },
                .size_queried => |*asked| {
                    const ref = port.lookUp(asked.handle, asked.peer.ip, now_us) orelse return;
                    port.recordPacket(ref, datagram, now_us);
                    // OVMF sends this when it only wanted the size, and requests the file again.
                    port.boots.apply(ref, now_us, .{
                        .suspected = .{
                            .cause = .tftp_option_refused,
                            .text = errorText(datagram),
                        },
                    });
                },
                .unanswered => |*unanswered| {
                    const ref =
                        port.lookUp(unanswered.handle, unanswered.peer.ip, now_us) orelse return;
                    port.recordPacket(ref, datagram, now_us);
                    port.suspect(ref, &unanswered.why, now_us);
                },
                .finished => |*finished| port.finish(finished, datagram, now_us),
                .failed => |*failed| port.fail(failed, datagram, now_us),
                .refused => |*refused| port.onRefused(refused, now_us),
            }
        }

        fn finish(
            port: *Self,
            finished: *const @FieldType(TftpServer.Event, "finished"),
            datagram: []const u8,
            now_us: u64,
        ) void {
            port.boots.io.onTftpAck(now_us);
            const owner = port.takeOwner(finished.transfer.slot) orelse return;
            assert(port.owners[finished.transfer.slot] == null);
            port.credit(owner, .{
                .bytes_in = datagram.len,
                .packets_in = @intFromBool(datagram.len > 0),
                .retries = finished.retries,
            }, now_us);
            port.recordPacket(owner.ref, datagram, now_us);
            loading.onProgress(port.boots, owner.ref, owner.file, now_us, .{
                .bytes = finished.bytes,
                .retransmitted = finished.retries,
                .outcome = .done,
            });
            port.boots.apply(owner.ref, now_us, switch (owner.what) {
                .boot_program => .nbp_end,
                else => |what| .{ .loader_end = loaderFile(what) },
            });
        }

        fn fail(
            port: *Self,
            failed: *const @FieldType(TftpServer.Event, "failed"),
            datagram: []const u8,
            now_us: u64,
        ) void {
            const owner = port.takeOwner(failed.transfer.slot) orelse return;
            assert(port.owners[failed.transfer.slot] == null);
            port.credit(owner, .{ .retries = failed.retries }, now_us);
            loading.onProgress(port.boots, owner.ref, owner.file, now_us, .{
                .bytes = failed.bytes,
                .retransmitted = failed.retries,
                .outcome = switch (failed.why) {
                    .timeout, .evicted => .timeout,
                    .peer_error => .refused,
                    .superseded, .aborted => .aborted,
                },
            });
            port.recordPacket(owner.ref, datagram, now_us);
            port.suspect(owner.ref, &failed.why, now_us);
        }

        fn begin(port: *Self, owner: Owner, ip: base.Ip4, size: usize, now_us: u64) void {
            assert(port.boots.get(owner.ref) != null);
            port.boots.learnPeer(owner.ref, ip);
            port.boots.apply(owner.ref, now_us, switch (owner.what) {
                .boot_program => .nbp_begin,
                else => |what| .{ .loader_begin = loaderFile(what) },
            });
            port.boots.note(owner.ref, now_us, .from_device, .{ .name = .tftp_read_request });
            port.credit(owner, .{ .bytes_in = size, .packets_in = 1 }, now_us);
        }

        fn suspect(port: *Self, ref: Boots.Ref, why: *const TftpServer.Failure, now_us: u64) void {
            switch (why.*) {
                .peer_error => |peer_error| port.boots.apply(ref, now_us, .{
                    .suspected = .{ .cause = .tftp_refused, .text = peer_error.text },
                }),
                .timeout, .evicted => {
                    // What was suspected during the transfer is more specific.
                    const boot = port.boots.get(ref) orelse return;
                    if (boot.suspicion) |earlier| if (earlier.cause == .path_mtu_black_hole) return;
                    port.boots.apply(ref, now_us, .{ .suspected = .{ .cause = .tftp_timeout } });
                },
                .superseded, .aborted => {},
            }
        }

        fn loaderFile(what: What) core.boot.LoaderFile {
            return switch (what) {
                .boot_program => unreachable,
                .configuration => .script,
                .kernel => .kernel,
                .initrd => .initrd,
                .start => .start,
            };
        }

        /// Loaders probe for files that need not exist; only a program that this edge named counts
        /// as missing. Some probes show that the loader runs.
        fn onRefused(
            port: *Self,
            refused: *const @FieldType(TftpServer.Event, "refused"),
            now_us: u64,
        ) void {
            if (refused.why != .not_found) return;
            const name = refused.name.slice();
            const is_loaders =
                core.loader.grub_config.isProbe(name) or core.loader.pxelinux_config.isProbe(name);
            if (refused.handle == null and !is_loaders) return;
            const ref = port.lookUp(refused.handle, refused.peer.ip, now_us) orelse return;
            port.boots.note(ref, now_us, .from_device, .{ .name = .tftp_read_request });
            port.boots.note(ref, now_us, .from_edge, .{
                .name = .tftp_error,
                .number = @backingInt(wire.ErrorCode.file_not_found),
            });
            const boot = port.boots.get(ref) orelse return;
            loading.onMissing(
                port.boots,
                .{ .ref = ref, .at_us = now_us, .protocol = .tftp, .name = name },
            );
            if (is_loaders) return port.boots.apply(ref, now_us, .{ .loader_begin = .other });
            if (boot.facts.program) |*program| if (!program.file.eql(&refused.name)) return;
            port.boots.apply(
                ref,
                now_us,
                .{ .suspected = .{ .cause = .nbp_not_found, .text = refused.name } },
            );
        }

        fn onRepeatedAck(port: *Self, peer: base.Endpoint) void {
            const place = port.server.index.get(peer) orelse return;
            assert(place < port.owners.len);
            if (port.owners[place]) |*owner| owner.repeated_acks +|= 1;
        }

        fn onFirstBlocks(port: *Self, owner: *Owner, blksize: u16, now_us: u64) void {
            owner.first_sends +|= 1;
            assert(owner.first_sends > 0);
            assert(blksize <= port.server.options.blksize_max);
            if (blksize <= wire.blksize_default) return;
            if (owner.first_sends < first_sends_suspicious) return;
            if (owner.repeated_acks < repeated_acks_suspicious) return;
            var buffer: [base.UntrustedText.size_max]u8 = undefined;
            const text = std.mem.print(
                &buffer,
                "TFTP blocks of {d} bytes are not acknowledged",
                .{blksize},
            ) catch unreachable;
            port.boots.apply(owner.ref, now_us, .{
                .suspected = .{ .cause = .path_mtu_black_hole, .text = .init(text) },
            });
        }

        fn errorText(datagram: []const u8) base.UntrustedText {
            const packet = wire.parse(datagram) catch return .empty;
            return if (packet == .err) .init(packet.err.text) else .empty;
        }

        /// Counts an OACK or ERROR.
        fn countPacket(
            port: *Self,
            step: *const TftpServer.Step,
            bytes: []const u8,
            now_us: u64,
        ) void {
            assert(bytes.len > 0);
            const packet = core.boot.packets.ofTftp(bytes) orelse return;
            port.countFirst(step, packet, bytes.len, now_us);
        }

        /// Counts the first packet to a peer, which has no slot yet.
        fn countFirst(
            port: *Self,
            step: *const TftpServer.Step,
            packet: core.boot.packets.Packet,
            size: u64,
            now_us: u64,
        ) void {
            for (step.events.constSlice()) |*event| switch (event.*) {
                .requested => |*transfer| {
                    const ref =
                        port.lookUp(transfer.handle, transfer.peer.ip, now_us) orelse return;
                    const owner: Owner =
                        .{ .ref = ref, .what = port.catalogue.what(transfer.file.source) };
                    port.credit(owner, .{ .bytes_out = size, .packets_out = 1 }, now_us);
                    port.boots.note(ref, now_us, .from_edge, packet);
                },
                .started, .size_queried, .unanswered, .finished, .failed, .refused => {},
            };
        }

        fn countBlocks(
            port: *Self,
            step: *const TftpServer.Step,
            blocks: *const TftpServer.Blocks,
            datagram: []const u8,
            now_us: u64,
        ) void {
            assert(blocks.count > 0);
            if (blocks.slot == TftpServer.Transfer.no_slot)
                return port.countFirst(
                    step,
                    .{ .name = .tftp_data, .number = 1 },
                    blocks.byteCount(),
                    now_us,
                );
            assert(blocks.slot < port.owners.len);
            const owner = port.owners[blocks.slot] orelse return;
            if (blocks.first == 1) {
                assert(blocks.blksize > 0);
                const negotiated: core.boot.Transfers.Progress = .{ .block_size = blocks.blksize };
                loading.onProgress(port.boots, owner.ref, owner.file, now_us, negotiated);
                port.onFirstBlocks(&port.owners[blocks.slot].?, blocks.blksize, now_us);
            }
            // `begin` has counted the first acknowledgement.
            const is_counted = datagram.len == 0 or step.events.count > 0;
            port.credit(owner, .{
                .bytes_in = if (is_counted) 0 else datagram.len,
                .packets_in = @intFromBool(!is_counted),
                .bytes_out = blocks.byteCount(),
                .packets_out = blocks.count,
            }, now_us);
            if (!is_counted) port.recordPacket(owner.ref, datagram, now_us);
            const last = blocks.first + blocks.count - 1;
            port.boots.note(owner.ref, now_us, .from_edge, .{ .name = .tftp_data, .number = last });
        }

        /// Records a packet of a transfer by its first four bytes.
        fn recordPacket(port: *Self, ref: Boots.Ref, datagram: []const u8, now_us: u64) void {
            if (core.boot.packets.ofTftp(datagram)) |packet|
                port.boots.note(ref, now_us, .from_device, packet);
        }

        fn credit(port: *Self, owner: Owner, traffic: Traffic, now_us: u64) void {
            port.sent_bytes += traffic.bytes_out;
            assert(port.sent_bytes >= traffic.bytes_out);
            port.boots.apply(owner.ref, now_us, switch (owner.what) {
                .boot_program => .{ .nbp_traffic = traffic },
                else => .{ .loader_traffic = traffic },
            });
        }

        /// Finds the boot of a request whose peer has not answered yet.
        fn lookUp(port: *Self, handle: ?core.boot.Handle, ip: base.Ip4, now_us: u64) ?Boots.Ref {
            if (handle == null) {
                if (now_us >= port.lookups_until_us) {
                    port.lookups_left = lookups_per_s;
                    port.lookups_until_us = now_us + std.time.us_per_s;
                }
                if (port.lookups_left == 0) return null;
                assert(port.lookups_left <= lookups_per_s);
                port.lookups_left -= 1;
                assert(port.lookups_left < lookups_per_s);
            }
            return port.boots.forPath(handle, ip);
        }

        fn takeOwner(port: *Self, place: u16) ?Owner {
            assert(place < port.owners.len);
            defer port.owners[place] = null;
            return port.owners[place];
        }
    };
}
