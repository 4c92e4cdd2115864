"""All that a module says as a text that no other module has, in a tenth of the time of printing it."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import (
    ArrayAttr,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer

from tempo_ir.dialects.sdg.attributes import DomainAttr, IndexAttr
from tempo_ir.index.expr import index_text


def program_text(module: ModuleOp) -> str:
    """All that a module says, with its places and the names of its values, as a text that no other module has."""
    text = _Text()
    text.operation(module)
    return "\n".join(text.parts)


class _Text:
    """
    The parts of a module one by one: of an op its name, operands, results with their types and names, properties,
    attributes, successors, place, and its regions. Values and blocks are numbers. As far as a warm start is concerned
    it is all that is left of printing.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._numbers: dict[int, str] = {}
        self._texts: dict[int, str] = {}
        """Those of attributes by identity: a module holds all of them while this is at work."""
        self._printer = Printer()

    def operation(self, op: Operation) -> None:
        """An op and what is in it."""
        texts, attribute, numbers = self._texts, self._attribute, self._numbers
        operands = [numbers.get(id(value)) or self._number(value) for value in op.operands]
        said = [op.name, " ".join(operands)]
        for result in op.results:
            kind = result.type
            said += (self._number(result), str(result.name_hint), texts.get(id(kind)) or attribute(kind))
        for named in (op.properties, op.attributes):
            said.append(str(len(named)))
            for name, value in named.items():
                said += (name, texts.get(id(value)) or attribute(value))
        place, regions = op.location, op.regions
        said += (texts.get(id(place)) or attribute(place), str(len(regions)))
        if successors := op.successors:
            said.append(" ".join([self._number(block) for block in successors]))
        self.parts.append("\n".join(said))
        if not regions:
            return
        for region in regions:
            for block in region.blocks:
                self.parts.append(f"block {self._number(block)} {len(block.args)}")
                for argument in block.args:
                    self.parts += (self._number(argument), str(argument.name_hint), attribute(argument.type))
                for inner in block.ops:
                    self.operation(inner)
            self.parts.append("end")

    def _number(self, value: SSAValue | Block) -> str:
        numbers = self._numbers
        found = numbers.get(id(value))
        if found is None:
            found = numbers[id(value)] = str(len(numbers))
        return found

    def _attribute(self, attribute: Attribute) -> str:
        text = self._texts.get(id(attribute))
        if text is None:
            text = self._texts[id(attribute)] = self._written(attribute)
        return text

    def _written(self, attribute: Attribute) -> str:
        """What is written here begins as nothing that is printed does, and tells the kinds apart."""
        match attribute:
            case StringAttr():
                return f"~{attribute.data!r}"
            case ArrayAttr():
                return f"[{', '.join([self._attribute(element) for element in attribute.data])}]"
            case FileLineColLoc():
                return f"~{attribute.filename.data!r}:{attribute.line.data}:{attribute.column.data}"
            case IndexAttr():
                return f"~{index_text(attribute.data)}"
            case DomainAttr():
                return f"~{attribute.data}"
            case TensorType():
                kind, shape = self._attribute(attribute.element_type), attribute.get_shape()
                return f"~tensor{shape}{kind}, {self._attribute(attribute.encoding)}"
            case DenseIntOrFPElementsAttr():  # a text of numbers says 0.0 of one that begins with it
                kind, data = attribute.parameters
                assert isinstance(data, BytesAttr)
                return f"~dense{self._attribute(kind)} {data.data.hex()}"
            case _:
                self._printer.stream = StringIO()
                self._printer.print_attribute(attribute)
                return self._printer.stream.getvalue()
