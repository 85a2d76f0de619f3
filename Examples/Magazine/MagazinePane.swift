// SPDX-License-Identifier: Apache-2.0

import ExampleScreen
import ExampleStage

/// Issue and page of a magazine, in two programs that share one store. On the stage, the first device has
/// the lite edition and the second the full one.
@main
final class MagazinePane: Pane {
    static let name = "Magazine"
    static let identifier = "EXAMPLES.magazine"
    static let options = ["--edition"]

    private let reader: Reader

    init(_ device: StageDevice) throws {
        let asked = device.options["--edition"] ?? (device.number == 0 ? "lite" : "full")
        guard let edition = Edition(rawValue: asked) else { throw UnknownEdition(name: asked) }
        reader = Reader(device.store, edition)
    }

    struct UnknownEdition: Error, CustomStringConvertible {
        var name: String
        var description: String { "there is no edition \"\(name)\", only lite and full" }
    }

    var lines: [Line] {
        let place = reader.place
        return [
            Line("The \(reader.edition.rawValue) edition", Style(.magenta)), "",
            Line("Issue \(place.issue)", .bold), Line("Page \(place.page) of \(Edition.pages)"),
            "", page, "",
            "Pages turned on all devices: \(reader.pagesTurned)", "",
            Line("← →  turn a page   ↑ ↓  another issue", .dim),
        ]
    }

    private var page: Line {
        reader.hasPlace
            ? Line("“Here is the text of this page.”")
            : Line("This page is in the full edition.", Style(.yellow))
    }

    func press(_ key: Key) {
        switch key {
        case .right: reader.turn(by: 1)
        case .left: reader.turn(by: -1)
        case .up: reader.open(issue: reader.place.issue + 1)
        case .down: reader.open(issue: reader.place.issue - 1)
        default: break
        }
    }
}
