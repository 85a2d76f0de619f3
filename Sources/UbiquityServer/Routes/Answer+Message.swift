// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOHTTP1
internal import SwiftProtobuf
internal import UbiquityCore
internal import UbiquityWire

extension Answer {
    init(_ message: some Message, _ format: WireFormat) {
        self.init(
            headers: ["Content-Type": format.rawValue],
            body: ByteBuffer(bytes: format.encode(message)))
    }
}

extension WireNewAccountAnswer {
    /// - Parameter server: The server's address; nil for a device, which knows it.
    init(_ invitation: Invitation, server: String? = nil, pin: String?) {
        self.init()
        (self.server, self.pin) = (server ?? "", pin ?? "")
        account = invitation.account.id.string
        code = invitation.code
        expiresMilliseconds = UInt64(clamping: invitation.expiresMilliseconds)
    }
}

extension WireSignInAnswer {
    init(_ account: Account, _ device: Device, credential: String) {
        self.init()
        self.account = account.id.string
        accountName = account.name.string
        self.device = device.reference.id.description
        self.credential = credential
        expiresMilliseconds = UInt64(clamping: device.rights.expiresMilliseconds ?? 0)
        stores = device.rights.stores.sortedTexts
    }
}

extension WireAccount {
    init(_ account: Account, _ devices: [Device]) {
        self.init()
        id = account.id.string
        name = account.name.string
        self.devices = devices.map(WireDevice.init)
        createdMilliseconds = UInt64(clamping: account.createdMilliseconds)
        if account.limits != AccountLimits() { limits = WireAccountLimits(account.limits) }
        generation = account.sealing.generation
    }
}

extension WireDevice {
    init(_ device: Device) {
        self.init()
        id = device.reference.id.description
        name = device.displayName
        createdMilliseconds = UInt64(clamping: device.createdMilliseconds)
        seenMilliseconds = UInt64(clamping: device.seenMilliseconds)
        expiresMilliseconds = UInt64(clamping: device.rights.expiresMilliseconds ?? 0)
        stores = device.rights.stores.sortedTexts
        if let clock = device.clock {
            clockAheadMilliseconds = clock.aheadMilliseconds
            clockMilliseconds = UInt64(clamping: clock.milliseconds)
        }
        version = device.version ?? ""
    }
}

extension WireDelivery {
    init(_ device: Device, _ delivery: Delivery) {
        self.init()
        self.device = WireDevice(device)
        isCurrent = delivery.isCurrent
        behind = UInt64(clamping: delivery.behind)
        hasStore_p = delivery.hasStore
    }
}

extension WireDeviceList {
    init(_ devices: [Device]) {
        self.init()
        self.devices = devices.map(WireDevice.init)
    }
}

extension WireAppList {
    init(_ apps: [RegisteredApp], _ admission: AppAdmission) {
        self.init()
        registeredOnly = admission == .registered
        self.apps = apps.map { app in
            .with {
                $0.identifier = app.identifier.string
                $0.registeredMilliseconds = UInt64(clamping: app.registered)
                $0.name = app.name ?? ""
            }
        }
    }
}

extension WireAuditTrail {
    init(_ entries: [AuditEntry]) {
        self.init()
        self.entries = entries.map { entry in
            .with {
                $0.number = UInt64(clamping: entry.number)
                $0.milliseconds = UInt64(clamping: entry.time)
                $0.deed = entry.event.action.rawValue
                $0.account = entry.event.account?.string ?? ""
                $0.device = entry.event.device?.description ?? ""
                $0.actor = entry.event.actor.word
                $0.actorDevice = entry.event.actor.device?.description ?? ""
                $0.count = UInt64(clamping: entry.count)
                $0.lastMilliseconds = UInt64(clamping: entry.last)
                $0.detail = entry.event.detail ?? ""
            }
        }
    }
}

extension Set<StoreIdentifier>? {
    /// As in a message, where an empty list means all stores.
    var sortedTexts: [String] { (self ?? []).map(\.string).sorted() }
}
