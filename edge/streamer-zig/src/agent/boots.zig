//! The boots of an edge: finds or begins the boot that a packet belongs to, applies what happened
//! to it, and journals and reports it as soon as a phase changes, before any answer goes out.
//! Called by every port of the agent; hands `Io` what is to be kept and reported. Invariants: a
//! boot that an answer names is in the journal; a request that anybody can send ends no boot, and
//! leads to one candidate beside the boot that its device is in
//! (docs/decisions/0027-candidate-boots.md).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const stream = @import("wire").stream;
const wire = @import("wire");
const candidates = @import("candidates.zig");
const device_address = @import("device_address.zig");
const mutants = @import("mutants.zig");
const device_keys = @import("device_keys.zig");
const holdings = @import("versions/holdings.zig");
const private_images = @import("private_images.zig");
const version_openings = @import("version_openings.zig");
const write_caches = @import("write_caches.zig");
const assert = std.debug.assert;

const Boot = core.boot.Boot;
const BootBlocker = core.loader.kernel_fit.BootBlocker;
const describedVersion = core.boot.assignment.describedVersion;

pub fn Boots(comptime Io: type) type {
    return struct {
        const Self = @This();
        const Discovery = @import("discovery.zig").Discovery(Io);
        const Profiles = @import("profile/profiles.zig").Profiles(Io);
        const WriteCaches = write_caches.WriteCaches(Io);

        io: *Io,
        table: core.boot.Table,
        policy: core.boot.Policy = .nothing,
        waiting: core.site.WaitingDevices = .{},
        /// Power orders that running devices have not carried out yet.
        orders: core.site.PowerOrders = .{},
        /// Messages of the other edges of the site; without others this edge owns every device.
        peers: *core.site.PeerTable,
        discovery: Discovery,
        openings: version_openings.Openings = .{},
        holdings: holdings.OwnHoldings = .{},
        caches: WriteCaches,
        profiles: Profiles,
        /// What boots in progress read.
        reads: core.boot.ReadLog = .none,
        /// The first address of this edge's own network.
        network: base.Ip4 = .zero,
        /// The write cache of every boot in standalone use.
        write_cache: write_caches.CacheSettings = .{},
        /// Boot scripts tell devices to use clear text for their streams.
        clear: bool = false,
        /// Validity of fail-over tickets.
        ticket_lifetime_s: u32 = core.stream.ticket.lifetime_s,
        ignored: base.IgnoredCounters = .{},
        /// Null where unregistered devices begin boots without a limit.
        unregistered: ?core.boot.UnregisteredLimit = null,
        /// Null where this edge has no DHCP.
        leases: ?*const core.dhcp.Service = null,
        /// Networks behind routers where an address may name any MAC address.
        trusted: []const base.Ip4Prefix = &.{},

        pub const Ref = core.boot.Table.Ref;

        pub fn deinit(boots: *Self, gpa: std.mem.Allocator) void {
            boots.table.deinit(gpa);
            if (boots.unregistered) |*limit| limit.deinit(gpa);
            boots.caches.deinit(gpa);
            boots.profiles.deinit();
            boots.reads.deinit(gpa);
            boots.discovery.devices.deinit(gpa);
            boots.* = undefined;
        }

        /// Returns the boot that a DHCP request belongs to or begins; null: ignore the device.
        pub fn forDhcp(
            boots: *Self,
            now_us: u64,
            client: *const core.boot.Client,
            xid: u32,
            size: usize,
        ) ?Ref {
            const request = dhcpRequestOf(client, xid, size);
            const ref = candidates.continued(boots, now_us, client.mac, request) orelse
                (boots.begin(now_us, client.mac) catch null) orelse return null;
            const boot = boots.table.get(ref).?;
            assert(boot.identity.mac.eql(client.mac));
            if (mutants.has(.transaction_outlives_session) and boot.stream_was_open) return ref;
            assert(!boot.stream_was_open);
            if (request.message == .discover and !candidates.mayStillBoot(boots, boot, request))
                return null;
            // Facts come from the firmware: what iPXE sends later describes iPXE.
            if (boot.facts.client_arch == null) {
                boot.facts.client_arch = @backingInt(client.arch);
                boot.facts.vendor_class = client.vendor_class;
                boot.facts.user_class = client.user_class;
            }
            if (client.machine_id) |id| boot.facts.machine_id = id;
            if (client.ip) |ip| device_address.learnByDhcp(boots, boot, ip);
            boots.apply(ref, now_us, .{ .dhcp_request = request });
            boots.note(ref, now_us, .from_device, .{ .name = switch (client.message_type) {
                .discover => .dhcp_discover,
                .request => .dhcp_request,
                .inform => .dhcp_inform,
                else => .dhcp_other,
            } });
            return ref;
        }

        /// Returns whether a device may begin a boot, as far as it is unregistered: such devices
        /// share a part of the table and a rate. `from`: see `UnregisteredLimit.admits`.
        pub fn mayBegin(boots: *Self, now_us: u64, mac: base.Mac, from: ?base.Ip4) bool {
            const limit = if (boots.unregistered) |*limit| limit else return true;
            if (!boots.policy.bootsUnregistered(mac)) return true;
            if (boots.table.findByMac(mac) != null) return true;
            if (!limit.admits(now_us, mac, from)) {
                boots.ignored.add(.unregistered_limit);
                return false;
            }
            assert(boots.table.unregistered_count <= boots.table.slots.len);
            return true;
        }

        pub fn dhcpRequestOf(
            client: *const core.boot.Client,
            xid: u32,
            size: usize,
        ) core.boot.DhcpRequest {
            return .{
                .message = if (client.message_type == .discover) .discover else .request,
                .client = if (client.loader == .ipxe) .ipxe else .rom,
                .xid = xid,
                .size = @intCast(size),
            };
        }

        /// After `policy` has changed.
        pub fn onState(boots: *Self) void {
            boots.openings.onState();
            boots.holdings.is_outdated = true;
            device_keys.onState(boots);
        }

        /// The device addressed this edge by name: the boot belongs to this edge.
        pub fn take(boots: *Self, ref: Ref) void {
            const boot = boots.table.get(ref) orelse return;
            boot.is_taken = true;
            boots.peers.onBoot(boot);
        }

        /// The device accepted the answer of the edge `to`: what began here is no boot.
        pub fn withdraw(boots: *Self, ref: Ref, to: base.Uuid) void {
            const boot = boots.table.get(ref) orelse return;
            boots.peers.dropBoot(boot);
            assert(!to.eql(.zero));
            boots.io.journalFailover(boot);
            if (boot.revision > 0)
                boots.io.report(.{ .withdrawn = .{ .boot_id = boot.identity.id, .to = to } });
            boots.table.remove(ref);
            assert(boots.table.get(ref) == null);
        }

        /// Reports a device that cannot continue here because another edge keeps its writes.
        pub fn reportWaiting(boots: *Self, waiting: *const core.site.WaitingDevices.Waiting) void {
            boots.io.report(.{ .waiting = waiting });
        }

        /// Records a DHCP request of a device that is not in the desired state.
        pub fn discover(
            boots: *Self,
            now_us: u64,
            request: *const core.dhcp.Service.BootRequest,
        ) void {
            if (boots.policy.source == .nothing) return;
            boots.discovery.onDhcp(boots.io, now_us, &boots.policy, request);
        }

        /// Records a script request of a device that is not in the desired state.
        pub fn discoverByHttp(
            boots: *Self,
            now_us: u64,
            mac: base.Mac,
            ip: base.Ip4,
            query: ?core.loader.MediaQuery,
        ) void {
            assert(mac.isDevice());
            if (boots.policy.source == .nothing or
                boots.policy.decide(mac, boots.io.unixMs()) != .unknown_device) return;
            boots.discovery.onHttp(boots.io, now_us, &boots.policy, mac, ip, query);
        }

        /// The device has proved itself in a later boot, here or at another edge.
        pub fn supersede(boots: *Self, now_us: u64, ref: Ref) void {
            boots.table.supersede(ref, now_us);
            boots.settle(boots.table.get(ref).?);
            assert(boots.table.get(ref).?.isOver());
        }

        /// Returns or begins the boot of a script that is requested by MAC address, without our
        /// DHCP.
        pub fn forScript(
            boots: *Self,
            now_us: u64,
            mac: base.Mac,
            ip: base.Ip4,
        ) core.boot.Table.BeginError!?Ref {
            const ref = candidates.inLoader(boots, mac) orelse
                candidates.refused(boots, now_us, mac) orelse
                (try boots.begin(now_us, mac)) orelse return null;
            assert(!boots.table.get(ref).?.stream_was_open);
            device_address.learnByScript(boots, boots.table.get(ref).?, ip);
            return ref;
        }

        /// Returns the boot of a path `b/<handle>/...`, or that of the address that requests a bare
        /// name.
        pub fn forPath(boots: *Self, handle: ?core.boot.Handle, ip: base.Ip4) ?Ref {
            if (handle) |known| return boots.table.findByHandle(known.value);
            if (boots.table.findActiveByIp(ip)) |ref| return ref;
            const mac = device_address.macOf(boots, ip) orelse return null;
            const ref = boots.table.findByMac(mac) orelse return null;
            return if (boots.table.isActive(ref)) ref else null;
        }

        /// A power command was sent: it begins a boot unless the device is booting already.
        pub fn powerOn(boots: *Self, now_us: u64, mac: base.Mac) void {
            // Every edge of the site sends the packet, and one of them waits for the device.
            if (!mac.isDevice()) return;
            if (boots.peers.isOwn(now_us, boots.askedOf(mac, boots.network)))
                boots.expect(now_us, mac);
            assert(boots.table.active_count <= boots.table.count);
        }

        /// This edge alone has switched the device on: begins a boot, unless it is booting already.
        pub fn expect(boots: *Self, now_us: u64, mac: base.Mac) void {
            if (!mac.isDevice()) return;
            var others = boots.table.iterateOf(mac);
            while (others.next()) |ref| if (!boots.table.get(ref).?.isOver()) return;
            const ref = (boots.begin(now_us, mac) catch null) orelse return;
            assert(!boots.table.get(ref).?.isOver());
            boots.apply(ref, now_us, .power_command);
            assert(boots.table.get(ref).?.current() != null);
        }

        /// Describes a device that has sent nothing yet, as the edges of the site judge it.
        pub fn askedOf(
            boots: *const Self,
            mac: base.Mac,
            network: base.Ip4,
        ) core.site.PeerTable.DeviceRequest {
            return .{
                .mac = mac,
                .network = network,
                .home = boots.policy.homeOf(mac),
                .version = boots.versionFor(mac),
            };
        }

        /// Returns the version that a device's next boot gets; null: unknown, or none.
        fn versionFor(boots: *const Self, mac: base.Mac) ?base.Uuid {
            return switch (boots.policy.decide(mac, boots.io.unixMs())) {
                .target => |target| target.assignment.version_id,
                .ignored_device, .unknown_device, .disabled, .version_missing => null,
            };
        }

        /// Applies an address of which DHCP told. The address of a device that has a session is
        /// that of its session.
        pub fn learnAddress(boots: *Self, mac: base.Mac, ip: base.Ip4) void {
            var others = boots.table.iterateOf(mac);
            while (others.next()) |ref| {
                const boot = boots.table.get(ref).?;
                assert(boot.identity.mac.eql(mac));
                if (!boot.stream_was_open) device_address.learnByDhcp(boots, boot, ip);
            }
        }

        /// Learns the address of a download.
        pub fn learnPeer(boots: *Self, ref: Ref, ip: base.Ip4) void {
            const boot = boots.table.get(ref) orelse return;
            device_address.learnByRequest(boots, boot, ip);
        }

        /// Learns the address of a session that the boot's device has proved.
        pub fn learnSession(boots: *Self, ref: Ref, ip: base.Ip4) void {
            const boot = boots.table.get(ref) orelse return;
            if (boot.facts.is_ip_confirmed) return;
            boots.table.setAddress(boot, ip, true);
        }

        /// Returns whether the device of this boot has this address.
        pub fn isAt(boots: *Self, boot: *Boot, ip: base.Ip4) bool {
            return device_address.isDevice(boots, boot, ip);
        }

        pub fn apply(boots: *Self, ref: Ref, now_us: u64, event: core.boot.Event) void {
            boots.table.apply(ref, now_us, event);
            const boot = boots.table.get(ref) orelse return;
            boots.settle(boot);
            assert(!boot.changed);
        }

        /// Records a packet of this boot.
        pub fn note(
            boots: *Self,
            ref: Ref,
            now_us: u64,
            direction: core.boot.packets.Direction,
            packet: core.boot.packets.Packet,
        ) void {
            if (boots.table.get(ref)) |boot| boot.onPacket(now_us, direction, packet);
        }

        /// Records this edge's own DHCP answer; `payload` is the whole packet.
        pub fn onDhcpAnswer(
            boots: *Self,
            ref: Ref,
            now_us: u64,
            server_ip: base.Ip4,
            payload: []const u8,
        ) void {
            assert(payload.len > 0);
            const boot = boots.table.get(ref) orelse return;
            var scratch: wire.dhcp.Scratch = undefined;
            const packet = wire.dhcp.parse(payload, &scratch) catch return;
            const message_type = packet.options.message_type orelse return;
            const name: core.boot.packets.Name = switch (message_type) {
                .offer => .dhcp_offer,
                .ack => .dhcp_ack,
                else => .dhcp_nak,
            };
            boot.onPacket(now_us, .from_edge, .{ .name = name });
            if (core.boot.packets.Offer.of(&packet, server_ip, true)) |offer|
                boot.onOffer(now_us, offer);
        }

        /// Returns the menu to show; null: the device has none, or its choice is made.
        pub fn menuOf(boots: *const Self, boot: *const Boot) ?core.loader.Menu {
            if (!boot.mayChoose()) return null;
            return boots.policy.menuOf(boot.identity.mac, boots.io.unixMs());
        }

        /// Applies a menu choice, by hand or by timeout; it is journaled when this returns.
        pub fn choose(boots: *Self, ref: Ref, now_us: u64, choice: core.loader.menu.Choice) void {
            const boot = boots.table.get(ref) orelse return;
            const assignment: ?core.boot.Assignment = switch (choice.start) {
                .version => |version| boots.completed(version, boot.identity.mac),
                .local_disk => null,
            };
            boots.apply(ref, now_us, .{ .loader_begin = .script });
            boots.apply(ref, now_us, .{
                .menu_choice = .{ .title = choice.title, .assignment = assignment },
            });
            if (assignment != null) return;
            boots.apply(ref, now_us, .left_to_local_disk);
            assert(boot.isOver());
        }

        /// The boot's first session is open: recording for the boot profile may begin.
        pub fn beginProfile(boots: *Self, boot: *Boot) void {
            boot.read_ahead.had_profile = boots.profiles.sizeFor(boot) > 0;
            const wanted = boots.writeCacheOf(boot) orelse return;
            boots.profiles.begin(boot, wanted.class);
        }

        pub fn onRead(boots: *Self, ref: Ref, read: *const core.stream.Server.ReadRequest) void {
            assert(read.length > 0);
            boots.profiles.onRead(read);
            const boot = boots.table.get(ref) orelse return;
            if (!boot.isOver() and !read.repeated) boot.read_ahead.onRead(read.kind, read.length);
        }

        pub fn onUsed(boots: *Self, used: *const core.stream.Server.UsedUnits) void {
            boots.io.onUsed(used);
            boots.profiles.onUsed(used);
            const boot = boots.bootById(used.boot_id) orelse return;
            if (!boot.isOver()) boot.read_ahead.onUsed(used.units);
            assert(boot.read_ahead.used_bytes <= boot.read_ahead.asked_bytes);
        }

        /// The device says how long its latest reads took.
        pub fn onFetched(
            boots: *Self,
            fetched: *const core.stream.Server.FetchedReads,
            now_us: u64,
        ) void {
            assert(fetched.reads.count() > 0);
            const boot = boots.bootById(fetched.boot_id) orelse return;
            if (!boot.isOver()) boot.read_times.onFetched(fetched.reads, now_us -| boot.started_us);
        }

        pub fn takeAccount(
            boots: *Self,
            account: *const core.stream.Server.AccountReport,
            from: base.Endpoint,
        ) void {
            boots.io.send(.stream, from, account.reply);
            const boot = boots.bootById(account.boot_id) orelse return;
            const id, const is_over = .{ boot.identity.id, boot.isOver() };
            boots.reads.addAccount(id, &boot.read_log_slot, is_over, &account.part);
        }

        /// A READ that was counted has its answer, or gets none.
        pub fn onReadEnd(boots: *Self, ref: Ref, at_us: u64) void {
            const boot = boots.table.get(ref) orelse return;
            if (!boot.isOver()) boot.series.onReadEnd(at_us -| boot.started_us);
        }

        /// The device says what it is. Its next report, or the end of its boot, takes that along.
        pub fn onMachine(boots: *Self, said: *const core.stream.Server.DeviceMachine) void {
            const boot = boots.bootById(said.boot_id) orelse return;
            if (boot.facts.onMachine(&said.machine)) boot.touched = true;
        }

        /// The same for what it measured of the network: after its boot only the final figures.
        pub fn onNetwork(boots: *Self, said: *const core.stream.Server.DeviceNetwork) void {
            const boot = boots.bootById(said.boot_id) orelse return;
            if (boot.isOver() and !said.network.is_final) return;
            if (boot.facts.onNetwork(said)) boot.touched = true;
        }

        fn bootById(boots: *Self, id: base.Uuid) ?*Boot {
            return boots.table.get(boots.table.findById(id) orelse return null);
        }

        /// Applies a running device's report; returns the order that waits for it.
        pub fn takeReport(
            boots: *Self,
            now_us: u64,
            said: *const core.stream.Server.DeviceReport,
        ) stream.ReportAck {
            const ref = boots.table.findById(said.boot_id) orelse return .{};
            if (mutants.has(.deaf_to_the_running) and boots.table.get(ref).?.isOver())
                return boots.orders.waitingFor(said.boot_id);
            assert(boots.table.get(ref).?.identity.id.eql(said.boot_id));
            var report = said.report;
            if (!boots.orders.take(said.boot_id, .fromBytes(report.order_id)))
                report.order_id = @splat(0);
            boots.apply(ref, now_us, .{ .guest = report });
            if (mutants.has(.order_follows_device))
                if (boots.orderOfDevice(ref)) |order| return order;
            return boots.orders.waitingFor(said.boot_id);
        }

        /// Applies the report of a device whose session is lost for good; returns the order that
        /// waits for it, also when the table has forgotten its boot.
        pub fn takeLost(
            boots: *Self,
            now_us: u64,
            said: *const core.stream.Server.LostReport,
        ) stream.ReportAck {
            assert((said.reason == .refused) == (said.refusal != null));
            const order_id: base.Uuid = .fromBytes(said.order_id);
            const is_taken = boots.orders.take(said.boot_id, order_id);
            if (boots.table.findById(said.boot_id)) |ref| {
                const boot = boots.table.get(ref).?;
                const is_news = boot.onLost(now_us, &.{
                    .reason = said.reason,
                    .refusal = said.refusal,
                    .restart_in_s = said.restart_in_s,
                    .order_id = if (is_taken) order_id else null,
                });
                if (is_news) boots.settle(boot);
            }
            return boots.orders.waitingFor(said.boot_id);
        }

        /// Mutant: returns an order for another boot of the same device, which the table may have
        /// forgotten.
        fn orderOfDevice(boots: *Self, ref: Ref) ?stream.ReportAck {
            const own = boots.table.get(ref).?;
            for (&boots.orders.bindings) |*binding| {
                if (binding.order == .none or binding.bound.boot_id.eql(own.identity.id)) continue;
                const mac = boots.io.macOfBoot(binding.bound.boot_id) orelse continue;
                if (mac.eql(own.identity.mac))
                    return .{ .order = binding.order, .order_id = binding.bound.id.bytes };
            }
            return null;
        }

        /// Mutant: returns a boot in progress for a peer that has none.
        pub fn anyReadyToEnd(boots: *Self) ?Ref {
            if (!mutants.has(.outcome_of_any_address)) return null;
            var iterator = boots.table.iterate();
            while (iterator.next()) |boot| if (!boot.isOver() and boot.stream_was_open) {
                assert(!boot.identity.id.eql(.zero));
                return boots.table.findById(boot.identity.id);
            };
            return null;
        }

        /// Applies the status of a boot's write cache.
        pub fn onWriteCache(
            boots: *Self,
            boot_id: base.Uuid,
            now_us: u64,
            held: core.boot.Guest.CacheStatus,
        ) void {
            const ref = boots.table.findById(boot_id) orelse return;
            const cause: ?core.boot.phase.Cause = switch (held.state) {
                .ok, .read_only => null,
                .stopped => .write_cache_full,
                .lost => .write_cache_lost,
            };
            if (cause) |known| boots.apply(ref, now_us, .{ .failed = .{ .cause = known } });
            const boot = boots.table.get(ref) orelse return;
            const guest = if (boot.guest) |*known| known else return;
            if (!guest.setCacheStatus(held)) return;
            boot.changed = true;
            boots.settle(boot);
            assert(!boot.changed);
        }

        /// Applies the status of a write cache on the device's own disk: it reports itself full
        /// after the first write that does not fit.
        pub fn onLocalDisk(boots: *Self, boot_id: base.Uuid, now_us: u64) void {
            const boot = boots.get(boots.table.findById(boot_id) orelse return) orelse return;
            assert(boot.identity.id.eql(boot_id));
            const order = boot.assignment.local_disk orelse return;
            const guest = boot.guest orelse return;
            if (guest.cache_status.state == .lost) return;
            const is_full = if (guest.write_cache) |cache| cache.used == cache.size else false;
            const state: core.boot.Guest.CacheState = if (!is_full) .ok else switch (order.full) {
                .stop => .stopped,
                .read_only => .read_only,
            };
            boots.onWriteCache(boot_id, now_us, .{
                .class = .device_ram_local_disk,
                .state = state,
            });
        }

        /// The device's own disk failed, or returned other bytes than were written.
        pub fn onLocalDiskLost(boots: *Self, ref: Ref, now_us: u64) void {
            const boot = boots.get(ref) orelse return;
            if (boot.assignment.local_disk == null) return;
            boots.onWriteCache(boot.identity.id, now_us, .{
                .class = .device_ram_local_disk,
                .state = .lost,
            });
        }

        pub fn get(boots: *Self, ref: Ref) ?*Boot {
            return boots.table.get(ref);
        }

        /// Returns where a boot's writes are kept; null: a class that this edge does not know.
        pub fn writeCacheOf(boots: *const Self, boot: *const Boot) ?write_caches.CacheSettings {
            // The kernel line fixed it, whatever is configured meanwhile.
            if (boot.assignment.local_disk != null) return .{ .class = .device_ram_local_disk };
            return boots.writeCacheFor(&boot.assignment);
        }

        fn writeCacheFor(
            boots: *const Self,
            assignment: *const core.boot.Assignment,
        ) ?write_caches.CacheSettings {
            if (assignment.writes) return .{ .class = .edge_persistent, .writes_version = true };
            const state = switch (boots.policy.source) {
                .nothing, .standalone => return boots.write_cache,
                .state => |state| state,
            };
            const vdisk_id = assignment.vdisk_id orelse return .{};
            const order = for (state.vdisks) |*vdisk| {
                if (vdisk.id.eql(vdisk_id)) break vdisk.writeCache orelse return .{};
            } else return .{};
            const class = std.meta.stringToEnum(core.boot.Guest.CacheClass, order.class) orelse
                return null;
            return .{ .class = class, .limit_bytes = order.limitBytes, .full = order.full };
        }

        /// Completes an assignment with what follows from its write cache.
        pub fn completed(
            boots: *Self,
            given: core.boot.Assignment,
            mac: base.Mac,
        ) core.boot.Assignment {
            const tuned = boots.policy.tuned(given, mac, boots.io.unixMs());
            var assignment = boots.ownImageOf(tuned, mac);
            const wanted = boots.writeCacheFor(&assignment) orelse return assignment;
            assert(assignment.writes == given.writes);
            if (wanted.class == .device_ram_local_disk)
                assignment.local_disk = .{ .full = wanted.full, .limit_bytes = wanted.limit_bytes };
            return assignment;
        }

        /// A device with a private image stays with the version below that image, whatever others
        /// get.
        fn ownImageOf(
            boots: *Self,
            given: core.boot.Assignment,
            mac: base.Mac,
        ) core.boot.Assignment {
            const wanted = boots.writeCacheFor(&given) orelse return given;
            if (wanted.class != .private) return given;
            return private_images.completed(boots, given, mac);
        }

        /// A thread has read the head of a private image.
        pub fn onImageRead(boots: *Self, now_us: u64, name: base.Uuid, found: ?base.Uuid) void {
            private_images.onRead(boots, now_us, name, found);
        }

        /// Returns whether this boot's request is to be answered later: its version is being
        /// opened, or a thread finds out which it is. `versionOf` and `blockerOf` know the result
        /// afterwards.
        pub fn awaitsVersion(boots: *Self, boot: *Boot) bool {
            if (mutants.has(.refuse_while_opening)) return false;
            private_images.readAgain(boots, boot);
            return !boot.assignment.image.isKnown() or version_openings.awaits(boots, boot);
        }

        /// A thread has opened a version, or could not.
        pub fn onVersionOpened(
            boots: *Self,
            now_us: u64,
            id: base.Uuid,
            problem: ?Io.Problem,
        ) void {
            version_openings.onOpened(boots, now_us, id, problem);
        }

        /// Returns the open version of a boot. Null also for a version in maintenance that another
        /// device writes: without those writes it would be a version that never existed.
        pub fn versionOf(boots: *Self, boot: *const Boot) ?*Io.Version {
            const id = boot.assignment.version_id;
            if (version_openings.stateOf(boots, id) != .open) return null;
            const version = boots.io.findVersion(id) orelse return null;
            assert(version.id.eql(id));
            return if (version.layer_above != null and !boot.assignment.writes) null else version;
        }

        /// Returns a blocker if another edge is the write owner of this boot's device; null: this
        /// edge may keep the writes, or nothing is kept.
        pub fn writeOwnerBlocker(boots: *const Self, boot: *const Boot) ?BootBlocker {
            if (!boots.keepsWrites(&boot.assignment)) return null;
            if (mutants.has(.keep_writes_of_others)) return null;
            var buffer: [base.UntrustedText.size_max]u8 = undefined;
            var writer: std.Io.Writer = .fixed(&buffer);
            switch (boots.policy.writeOwnerOf(boot.identity.mac)) {
                .any, .own => return null,
                .other => |home| writer.print("its writes are kept at the edge {s}", .{
                    home.name,
                }) catch {},
                .none => writer.writeAll(
                    "not registered: none of several edges keeps its writes",
                ) catch {},
            }
            return .{ .cause = .writes_at_another_edge, .text = .init(writer.buffered()) };
        }

        /// Returns whether the boot opens what is for its device alone: writes that outlive it, or
        /// a version in maintenance.
        pub fn opensPrivate(boots: *const Self, boot: *const Boot) bool {
            return boot.assignment.writes or boots.keepsWrites(&boot.assignment);
        }

        /// Returns whether the boot's writes outlive it.
        fn keepsWrites(boots: *const Self, assignment: *const core.boot.Assignment) bool {
            if (boots.policy.source == .state)
                if (describedVersion(boots.policy.source.state, assignment.version_id)) |version|
                    if (version.layerAboveVersionId != null) return true;
            const wanted = boots.writeCacheFor(assignment) orelse return false;
            return wanted.writes_version or
                wanted.class == .edge_persistent or wanted.class == .private;
        }

        /// Returns why the device cannot start its assignment, as far as the edge can tell; null:
        /// no objection. Ask `awaitsVersion` before.
        pub fn blockerOf(boots: *Self, boot: *const Boot) ?BootBlocker {
            if (boots.writeOwnerBlocker(boot)) |blocker| return blocker;
            const id = boot.assignment.version_id;
            switch (version_openings.stateOf(boots, id)) {
                .open => {},
                .waits => return .{ .cause = .version_missing, .text = .init("it is not open") },
                .problem => |problem| return boots.missingTo(boot, problem),
            }
            const version = boots.io.findVersion(id) orelse
                return .{ .cause = .version_missing, .text = .init("it is not open") };
            assert(version.id.eql(id));
            if (version.layer_above != null and !boot.assignment.writes)
                return .{
                    .cause = .version_missing,
                    .text = .init(
                        "the version is in maintenance, and this device does not write it",
                    ),
                };
            // The state may have changed since the boot began.
            if (!core.boot.assignment.isCommandLine(version.commandLine()))
                return .{
                    .cause = .version_missing,
                    .text = .init("its command line cannot stand in a boot script"),
                };
            // Firmware would read the version below by HTTP, without what was written.
            if (version.layer_above != null and version.kernel == null)
                return .{
                    .cause = .write_cache_unusable,
                    .text = .init("its device cannot write a disk that boots by itself"),
                };
            if (version.disk_shortage) |shortage|
                return .{ .cause = .disk_truncated, .text = shortage.text() };
            const files = if (version.loader_files) |*files| files else return null;
            const arch: ?wire.dhcp.ClientArch =
                if (boot.facts.client_arch) |number| @fromBackingInt(number) else null;
            return core.loader.kernel_fit.judge(files, arch);
        }

        fn missingTo(
            boots: *const Self,
            boot: *const Boot,
            problem: version_openings.Problem,
        ) BootBlocker {
            var asked = boots.askedOf(boot.identity.mac, boots.network);
            asked.version = boot.assignment.version_id;
            if (boots.peers.otherHolderOf(boots.io.now(), asked)) |index| {
                var buffer: [base.UntrustedText.size_max]u8 = undefined;
                var writer: std.Io.Writer = .fixed(&buffer);
                const there = boots.peers.site.?.edges.buffer[index].endpoint.?.ip;
                writer.print("the edge {f} has it, but did not answer the device", .{
                    there,
                }) catch {};
                return .{ .cause = .version_missing, .text = .init(writer.buffered()) };
            }
            if (problem.is_gone and boot.assignment.image == .own) return .{
                .cause = .version_missing,
                .text = .init("the version below its private image is missing: reset the image"),
            };
            return .{ .cause = .version_missing, .text = problem.text };
        }

        /// The version of a boot cannot be served: the boot goes on, and may end with it.
        pub fn suspectVersion(
            boots: *Self,
            ref: Ref,
            now_us: u64,
            problem: version_openings.Problem,
        ) void {
            const blocker = boots.missingTo(boots.table.get(ref).?, problem);
            boots.apply(ref, now_us, .{
                .suspected = .{ .cause = blocker.cause, .text = blocker.text },
            });
        }

        /// Journals a boot: disk and memory must agree before the device learns that its token is
        /// used.
        pub fn journalNow(boots: *Self, boot: *Boot) void {
            assert(boot.identity.handle != 0);
            assert(boot.identity.mac.isDevice());
            boot.touched = !boots.io.journal(boot);
        }

        /// Runs once a second: ends silent boots and journals the counts of the others.
        pub fn tick(boots: *Self, now_us: u64) void {
            // Boots from before a restart may have failed over; the other edges report that first.
            if (!boots.peers.isStarting(now_us)) boots.table.tick(now_us);
            var iterator = boots.table.iterate();
            while (iterator.next()) |boot| {
                boot.checkSilence(now_us);
                boots.settle(boot);
                if (!candidates.judgeHinted(boots, boot, now_us)) continue;
                boots.showProgress(boot, now_us);
                boots.settle(boot);
                if (boot.touched) boots.journalNow(boot);
                assert(!boot.changed);
                assert(boot.identity.handle != 0);
            }
            boots.profiles.tick(&boots.table);
            holdings.update(boots, now_us);
            version_openings.openAhead(boots, now_us);
            boots.io.compactJournal(&boots.table);
            boots.discovery.report(boots.io, now_us, &boots.policy);
        }

        /// Has a boot in progress reported whose counters moved, for whoever looks at it.
        fn showProgress(boots: *Self, boot: *Boot, now_us: u64) void {
            if (boot.isOver() or boot.changed or !boot.touched or boot.revision == 0) return;
            assert(!boot.is_unreported);
            if (boots.io.isReportLogBehind()) return;
            if (boot.live_reports.take(now_us -| boot.started_us)) boot.changed = true;
        }

        /// A hint begins a boot beside the device's others; null: ignore the device. They go on:
        /// only a boot that has proved itself ends another. A device that has a candidate already
        /// joins it, so that hints can neither push it out nor take more than its slot.
        pub fn begin(boots: *Self, now_us: u64, mac: base.Mac) core.boot.Table.BeginError!?Ref {
            const candidate = candidates.joined(boots, mac);
            const target = switch (boots.policy.decide(mac, boots.io.unixMs())) {
                .ignored_device, .unknown_device, .disabled => boots.unpermittedTarget() orelse
                    return null,
                .version_missing => boots.withdrawnTarget(mac) orelse {
                    boots.io.onVersionProblem(.not_described);
                    return null;
                },
                .target => |target| target,
            };
            const assignment = boots.completed(target.assignment, mac);
            // For a cold boot nothing is read ahead into the edge's memory.
            if (assignment.tuning.cache != .cold)
                boots.profiles.want(assignment.version_id, now_us);
            if (candidate) |ref| if (candidates.join(boots, now_us, ref, &assignment)) return ref;
            candidates.leaveOthers(boots, mac);
            var boot: Boot = .init(boots.newIdentity(mac), assignment, now_us, boots.io.unixMs());
            boot.device_identity = device_keys.identityOf(&boots.table, mac);
            boot.is_unregistered = boots.policy.bootsUnregistered(mac) and
                !mutants.has(.strangers_unbounded);
            const ref = boots.table.insert(boot, now_us) catch |err| {
                boots.ignored.add(.boot_table_full);
                return err;
            };
            assert(boots.table.get(ref).?.identity.mac.eql(mac));
            assert(!boots.table.get(ref).?.isOver());
            boots.io.onBegin(boots.table.get(ref).?);
            // Only suspected: the script shows it on the device's console, and it may have passed
            // by then.
            if (boots.writeOwnerBlocker(boots.table.get(ref).?)) |blocker| {
                boots.apply(ref, now_us, .{
                    .suspected = .{ .cause = blocker.cause, .text = blocker.text },
                });
            } else if (assignment.image.isKnown()) {
                switch (version_openings.stateOf(boots, assignment.version_id)) {
                    .open, .waits => {},
                    .problem => |problem| boots.suspectVersion(ref, now_us, problem),
                }
            }
            return ref;
        }

        /// Mutant: supersedes a boot, and forgets it.
        pub fn endByHint(boots: *Self, ref: Ref) void {
            boots.supersede(boots.io.now(), ref);
            if (boots.table.get(ref).?.isRunning()) boots.table.remove(ref);
        }

        /// Mutant: returns the first version for a device that may not boot.
        fn unpermittedTarget(boots: *const Self) ?core.boot.policy.Target {
            if (!mutants.has(.boot_without_permission)) return null;
            const state = switch (boots.policy.source) {
                .nothing, .standalone => return null,
                .state => |state| state,
            };
            const versions = state.vdisks[0].versions;
            if (versions.len == 0 or state.devices.len == 0) return null;
            const device = &state.devices[0];
            const assignment = core.boot.assignment.ofVersion(state, versions[0].id, device);
            return .{ .assignment = assignment orelse return null, .command_line = "" };
        }

        /// Mutant: returns the version of a device that is not described any more.
        fn withdrawnTarget(boots: *const Self, mac: base.Mac) ?core.boot.policy.Target {
            if (!mutants.has(.begin_withdrawn_version)) return null;
            const state = boots.policy.source.state;
            for (state.devices) |*device| if (device.mac.eql(mac)) return .{
                .assignment = core.boot.assignment.ofMissing(state, device.versionId, device),
                .command_line = "",
            };
            return null;
        }

        /// Journals and reports a change: a phase that began or ended.
        pub fn settle(boots: *Self, boot: *Boot) void {
            if (!boot.changed) return;
            boot.changed = false;
            assert(boot.identity.mac.isDevice());
            boots.peers.onBoot(boot);
            boot.is_unreported = candidates.isOnlyHinted(boots, boot, boots.io.now());
            if (boot.is_unreported) return boots.journalNow(boot);
            boot.revision += 1;
            boots.journalNow(boot);
            // The end of a boot has its own report; while the log is behind, reports in between
            // would displace those of other boots.
            const is_behind = boots.io.isReportLogBehind();
            if (boots.io.keepsReports() and (boot.isOver() or !is_behind)) {
                var buffer: [core.boot.report.size_max]u8 = undefined;
                const options: core.boot.report.Options =
                    .{ .revision = boot.revision, .read_phases = !is_behind };
                boots.io.report(.{ .boot = core.boot.report.encode(boot, options, &buffer) });
            }
            boots.io.onReport(boot);
            boot.live_reports.onReport(boots.io.now() -| boot.started_us);
            boot.live_changes = .{};
            assert(!boot.changed);
            assert(boot.revision > 0);
        }

        fn newIdentity(boots: *Self, mac: base.Mac) core.boot.Identity {
            assert(mac.isDevice());
            var random: [40]u8 = undefined;
            boots.io.random(&random);
            const handle = std.mem.readInt(u64, random[32..40], .big);
            return .{
                .id = .fromRandom(random[0..16].*),
                .mac = mac,
                .handle = if (handle == 0) 1 else handle,
                .token = random[16..32].*,
            };
        }
    };
}
