//! Queues unknown devices that request a boot for the report log. While the log waits for the
//! control plane they stay in their table: reports of boots come first.

const std = @import("std");
const base = @import("base");
const core = @import("core");

const DiscoveredDevices = core.site.DiscoveredDevices;
const assert = std.debug.assert;

pub fn Discovery(comptime Io: type) type {
    return struct {
        const Self = @This();

        devices: DiscoveredDevices,

        /// Reports in the log, of any kind, beyond which none is added.
        const backlog_max = 256;

        /// Records a DHCP request.
        pub fn onDhcp(
            discovery: *Self,
            io: *Io,
            now_us: u64,
            policy: *const core.boot.Policy,
            request: *const core.dhcp.Service.BootRequest,
        ) void {
            const client = &request.client;
            const packet = &request.packet;
            discovery.note(io, now_us, policy, &.{
                .mac = client.mac,
                .asked = .dhcp,
                .machine_id = client.machine_id,
                .vendor_class = client.vendor_class,
                .user_class = client.user_class,
                .host_name = .init(packet.options.host_name orelse ""),
                .client_arch = @backingInt(client.arch),
                .ip = client.ip,
                .relay = if (packet.giaddr.isUnicast()) packet.giaddr else null,
            });
        }

        /// Records a request for a boot script.
        pub fn onHttp(
            discovery: *Self,
            io: *Io,
            now_us: u64,
            policy: *const core.boot.Policy,
            mac: base.Mac,
            ip: base.Ip4,
            query: ?core.loader.MediaQuery,
        ) void {
            discovery.note(io, now_us, policy, &.{
                .mac = mac,
                .asked = .http,
                .machine_id = if (query) |known| known.machine_id else null,
                .client_arch = if (query) |known| known.client_arch else null,
                .ip = ip,
            });
        }

        fn note(
            discovery: *Self,
            io: *Io,
            now_us: u64,
            policy: *const core.boot.Policy,
            request: *const DiscoveredDevices.Request,
        ) void {
            if (discovery.devices.note(now_us, io.unixMs(), request))
                discovery.report(io, now_us, policy);
        }

        /// Reports what is due; also once a second, for what the log had no capacity for when it
        /// came.
        pub fn report(
            discovery: *Self,
            io: *Io,
            now_us: u64,
            policy: *const core.boot.Policy,
        ) void {
            while (discovery.devices.hasDue(now_us)) {
                if (io.reportBacklog() >= backlog_max) break;
                const device = discovery.devices.takeDue(now_us).?;
                assert(device.said.mac.isDevice());
                if (policy.decide(device.said.mac, io.unixMs()) != .unknown_device) {
                    // The device has been registered or ignored in the meantime.
                    discovery.devices.forget(device.said.mac);
                    continue;
                }
                var buffer: [DiscoveredDevices.report_size_max]u8 = undefined;
                io.report(.{ .discovered = DiscoveredDevices.encode(device, &buffer) });
            }
        }
    };
}
